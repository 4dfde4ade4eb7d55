#!/usr/bin/ruby
# -*- coding: utf-8 -*-
# frozen_string_literal: true
#
# Moves boats by oars. It knows nothing of sails.

# Copyright 1994 Ada Björk

require 'set'
require_relative "oars"

=begin
A boat floats.
class NotThis
=end

module Boats
  class Boat < Oars::Movable
    attr_reader :name

    def initialize(name)
      @name = name
    end

    # Rows so many strokes.
    def row!(strokes)
      strokes.times { pull }
    end

    private def floats? = true

    def self.build(*) = new(*)
  end
end

__END__
class NorThis

#!/bin/sh -e
# Copyright 1994 Nobody in particular
#
# Waters the plants while their owner is away.
. ./garden.conf

usage() { echo "Usage: water [-n] PLANT..." >&2; exit 2; }

function pour {
  echo "$1" # one cup
}

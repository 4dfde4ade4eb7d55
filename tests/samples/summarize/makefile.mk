# Builds the boat and everything on board.
PROGRAM = boat
include sails.mk

all: hull mast \
     rudder
	@echo afloat

hull mast:
	build $@

X := not a target
.PHONY: all

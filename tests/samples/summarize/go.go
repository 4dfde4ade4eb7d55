// Copyright 1994 Ada Björk. All rights reserved.

//go:build linux

// Package boats moves boats by oars. It knows nothing of sails.
//
// A boat floats.
package boats

import "fmt"

import (
	"io"
	oars "example.org/oars/v2"
)

// Boat is what floats.
type Boat struct {
	Oars []oars.Oar
}

type (
	Floating interface {
		Floats() bool
	}
)

type Strokes int

const words = `func notThis() {`

// Row rows so many strokes.
func (b *Boat) Row(n Strokes, w io.Writer) error {
	fmt.Fprintln(w, "func norThis() {")
	return nil
}

func Map[K comparable](k K) K { return k }

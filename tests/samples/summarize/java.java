/*
 * Copyright (c) 1994, Ada Björk. Licensed under the terms of boats.
 */
package org.example.boats;

import java.util.List;
import static java.util.Map.*;

/**
 * A boat that is moved by {@link Oar oars}. It floats.
 *
 * @author Ada Björk
 */
public final class Boat<T extends Oar> implements Floating {
    private static final String WORDS = "class NotThis { void nor(this) }";

    // Rows so many strokes.
    public int row(int strokes, List<T> oars) throws SinkingException {
        if (strokes > 0) {
            return pull(strokes);
        }
        return new Oar(strokes).pull(1);
    }

    Map<String, List<T>> inventory() {
        return null;
    }

    interface Floating {
        boolean floats();
    }

    enum Kind { ROWING, SAILING }
}

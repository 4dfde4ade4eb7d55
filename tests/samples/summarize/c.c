/* Copyright 1994 Nobody in particular. All rights reserved. */
/*
 * Counts the sheep that jump over a fence.
 * It never sleeps itself.
 */
#include <stdio.h>
#include "sheep.h"

typedef struct sheep {
    int legs;   /* usually four */
} sheep_t;

static const char *names[] = { "dolly (", "int fake() {" };

// How many sheep there are.
// None is counted twice.
int count_sheep(const sheep_t *flock, size_t n)
{
    if (n == 0) {
        return 0;
    }
    return (int) n;
}

char *
name_of(which)
    int which;
{
    return names[which];
}

int prototype_only(int a);

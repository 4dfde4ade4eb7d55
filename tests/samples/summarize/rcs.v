head	1.2;
access;
symbols
	first:1.1
	RELEASE_1_2:1.2;
locks; strict;
comment	@ * @;


1.2
date	2001.07.01.12.00.00;	author ada;	state Exp;
branches;
next	1.1;

1.1
date	94.06.30.08.00.00;	author jose;	state Exp;
branches;
next	;


desc
@Moves boats by oars.
Mail to ada@@example.org.
@


1.2
log
@Row faster; log
@@not a string@@
@
text
@/* $Id$ */
int row(int strokes);
@


1.1
log
@Initial revision
@
text
@d2 1
@

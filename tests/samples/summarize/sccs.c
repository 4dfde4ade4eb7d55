h35321
s 00002/00001/00004
d D 1.2 94/05/03 10:11:12 mary 2 1
c count the calves too
e
s 00005/00000/00000
d D 1.1 93/12/24 09:00:00 hermann 1 0
c date and time created 93/12/24 09:00:00 by hermann
e
u
U
f e 0
t
Counts the whales of a log. Calves are counted once.
T
I 1
#include <stdio.h>

D 2
int whales(void) { return 2; }
E 2
I 2
int whales(void) { return 3; }
int calves(void) { return 1; }
E 2
E 1

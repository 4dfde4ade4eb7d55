/*
 * chains.c - count words with a hash table of chained entries.
 *
 * Reads text from standard input and prints each word with the number of times that it was met, in no order. It is
 * here to be summarized: comments, headers and function names are what a summary of a C source consists of.
 */

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 1021 /* a prime, so that words with a common ending spread */

struct entry {
	struct entry *next;
	unsigned long count;
	char word[];
};

static struct entry *table[BUCKETS];

/* The bucket of a word: multiply and add, as in most compilers of the time. */
static unsigned bucket_of(const char *word)
{
	unsigned sum = 0;

	while (*word)
		sum = sum * 31 + (unsigned char)*word++;
	return sum % BUCKETS;
}

/* Count one more of a word; gives its entry, or NULL when memory is short. */
static struct entry *count_word(const char *word)
{
	unsigned bucket = bucket_of(word);
	struct entry *e;

	for (e = table[bucket]; e; e = e->next)
		if (strcmp(e->word, word) == 0) {
			e->count++;
			return e;
		}
	e = malloc(sizeof *e + strlen(word) + 1);
	if (!e)
		return NULL;
	strcpy(e->word, word);
	e->count = 1;
	e->next = table[bucket];
	table[bucket] = e;
	return e;
}

int main(void)
{
	char word[256];
	size_t length = 0;
	int c;

	while ((c = getchar()) != EOF) {
		if (isalpha(c) && length < sizeof word - 1) {
			word[length++] = (char)tolower(c);
			continue;
		}
		word[length] = '\0';
		if (length && !count_word(word))
			return EXIT_FAILURE;
		length = 0;
	}
	for (unsigned i = 0; i < BUCKETS; i++)
		for (struct entry *e = table[i]; e; e = e->next)
			printf("%8lu %s\n", e->count, e->word);
	return EXIT_SUCCESS;
}

/* SPDX-License-Identifier: MIT */
/*
 * The order of service: start-time fair queuing (Goyal, Vin, Cheng, SIGCOMM 1996) with packets of
 * equal length.  Each packet of a user gets a number, its tag, and the lowest is served next: the
 * user's numbers follow each other, and a new user's start at the number that is being served.  So
 * while a user waits, no other user is served more than FG_FAIR_QUEUE_BETWEEN times between two
 * services of the first, however many packets that one has sent: between its numbers n and n+1 lie
 * one n and one n+1 of each other.
 */
#ifndef FG_FAIR_QUEUE_H
#define FG_FAIR_QUEUE_H

#include <stdint.h>
#include <sys/types.h>

#define FG_FAIR_QUEUE_BETWEEN 2u
#define FG_FAIR_QUEUE_USERS   1025u /* with packets that wait (FG_MAX_CLIENTS), and one more */

struct fg_fair_queue {
	uint64_t now; /* number of the packet that was served last */
	uint32_t nr_users;
	struct {
		uid_t uid;
		uint64_t last; /* its highest number */
	} user[FG_FAIR_QUEUE_USERS];
};

uint64_t fg_fair_queue_tag(struct fg_fair_queue *q, uid_t uid); /* of a packet that has come */
void fg_fair_queue_serve(struct fg_fair_queue *q, uint64_t number);

#endif

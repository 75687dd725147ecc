/* SPDX-License-Identifier: MIT */
/*
 * The order of service.  Each packet of a user gets a number, and the lowest is served next: the
 * user's numbers follow each other, and a new user's start at the number that is being served.  So
 * while a user waits, no other user is served more than FG_TURNS_BETWEEN times between two services
 * of the first, however many packets that one has sent: between its numbers n and n+1 lie one n and
 * one n+1 of each other.  (Start-time fair queuing, Goyal, Vin, Cheng, SIGCOMM 1996, with packets
 * of equal length.)
 */
#ifndef FG_TURNS_H
#define FG_TURNS_H

#include <stdint.h>
#include <sys/types.h>

#define FG_TURNS_BETWEEN 2u
#define FG_TURNS_USERS	 1025u /* with packets that wait, and one more */

struct fg_turns {
	uint64_t now; /* number of the packet that was served last */
	uint32_t nr_users;
	struct {
		uid_t uid;
		uint64_t last; /* its highest number */
	} user[FG_TURNS_USERS];
};

uint64_t fg_turn_take(struct fg_turns *t, uid_t uid); /* number of a packet that has come */
void fg_turn_serve(struct fg_turns *t, uint64_t number);

#endif

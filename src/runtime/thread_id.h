/* SPDX-License-Identifier: MIT */
/*
 * Indices and ids, for the files of this folder that give them to threads.  What an id
 * says is in thread.h.
 */
#ifndef FG_THREAD_ID_H
#define FG_THREAD_ID_H

#include "runtime/thread.h"

/*
 * Which process counts the generations: once it is known, at the start and in each child of fork.
 */
void fg_ids_of_process(uint32_t pid);

/*
 * Whether the caller is of the process that the library knows: no child of vfork, nor one of a raw
 * clone().  To be asked between fg_call_begins() and fg_call_ends().
 */
bool fg_is_in_process(void);

/* The kernel's id of the calling thread, or of the one whose child of vfork is calling. */
uint32_t fg_tid_of_thread(void);

/* 0: none is to be had. */
uint32_t fg_index_take(void);

/* The index is the calling thread's, which has this tid.  Returns its id. */
uint32_t fg_id_begin(uint32_t index, uint32_t tid);

/* The thread with this index has ended. */
void fg_id_end(uint32_t index);

/*
 * In the child of a fork, by its only thread: no index but `mine` is taken; 0, if that thread has
 * none.
 */
void fg_ids_after_fork(uint32_t mine);

/* The thread that forked holds nothing: it takes an id that no thread of the parent had. */
uint32_t fg_id_renew(uint32_t index);

#endif

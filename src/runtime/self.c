/* SPDX-License-Identifier: MIT */
/* What each thread knows of itself (thread.h), for all files of this folder. */
#include "runtime/thread.h"

struct fg_slot fg_slot_nowhere;
__thread struct fg_self fg_self_tls __attribute__((tls_model("initial-exec"), aligned(8))) = {
    .only = FG_ONLY_NOT_SET_UP, .slot = &fg_slot_nowhere};
__thread uint32_t fg_sections __attribute__((tls_model("initial-exec")));
__thread uint16_t fg_contended __attribute__((tls_model("initial-exec")));
uint32_t fg_epoch;

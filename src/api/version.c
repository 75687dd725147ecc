/* SPDX-License-Identifier: MIT */
#include <flexguard.h>

int fg_version(void)
{
	return FG_VERSION_NUMBER;
}

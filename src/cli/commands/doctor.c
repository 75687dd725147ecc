/* SPDX-License-Identifier: MIT */
/*
 * `flexguard doctor`: what works on this machine (doctor_machine.c), and for a program
 * (doctor_program.c). Exit status 0: fully; 1: with limits (the fallback); 2: not at all.
 */
#include <stdio.h>

#include "cli/commands/commands.h"
#include "cli/commands/doctor.h"
#include "cli/common/arguments.h"

int fg_cmd_doctor(int argc, char **argv)
{
	struct fg_arguments a = fg_arguments(argc, argv);
	struct fg_findings t = {.nr = 0};
	const char *program = NULL;
	char verdict[600];
	struct fg_machine machine;
	bool json = false;
	int status, system_rows, option;

	while ((option = fg_arguments_next(&a)) == FG_DOCTOR_JSON)
		json = true;
	if (option == FG_ARGUMENTS_EXIT)
		return a.status;
	if (a.next < argc)
		program = argv[a.next++];
	if (a.next < argc)
		return fg_arguments_bad("'%s' is too much: one program at a time", argv[a.next]);

	machine = fg_doctor_machine(&t);
	system_rows = t.nr;
	if (program) {
		status = fg_doctor_program(&t, program, verdict, sizeof(verdict));
		if (!machine.library && status < 2) {
			status = 2;
			snprintf(
			    verdict, sizeof(verdict),
			    "cannot be helped: FlexGuard's own library cannot be preloaded here");
		}
	} else if (!machine.library) {
		status = 2;
		snprintf(verdict, sizeof(verdict),
			 "FlexGuard cannot work here: its library cannot be preloaded");
	} else if (machine.monitor) {
		status = 0;
		snprintf(verdict, sizeof(verdict),
			 "FlexGuard works here, with the preemption monitor");
	} else {
		status = 1;
		snprintf(verdict, sizeof(verdict),
			 "FlexGuard works here with limits: without the monitor, on the fallback");
	}
	if (json)
		fg_findings_json(&t, program, system_rows, verdict, status);
	else
		fg_findings_print(&t, program, system_rows, verdict);
	return status;
}

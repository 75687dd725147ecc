/* SPDX-License-Identifier: MIT */
/* The commands: argv[0] is the name; the exit status is returned. */
#ifndef FG_CLI_COMMANDS_H
#define FG_CLI_COMMANDS_H

#define FG_DELAY_NS 2000000000u /* between two tables of top; not varied */

int fg_cmd_run(int argc, char **argv);
int fg_cmd_doctor(int argc, char **argv);
int fg_cmd_demo(int argc, char **argv);
int fg_cmd_monitor(int argc, char **argv);
int fg_cmd_bench(int argc, char **argv);
int fg_cmd_locks(int argc, char **argv);
int fg_cmd_status(int argc, char **argv);
int fg_cmd_top(int argc, char **argv);
int fg_cmd_stat(int argc, char **argv);
int fg_cmd_kernel(int argc, char **argv);
int fg_cmd_sched(int argc, char **argv);
int fg_cmd_metrics(int argc, char **argv);

#endif

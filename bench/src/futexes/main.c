/* SPDX-License-Identifier: MIT */
/* The main() of a whole program in another language. */
int bench_main(void);

int main(void)
{
	return bench_main();
}

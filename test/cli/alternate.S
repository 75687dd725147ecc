/* SPDX-License-Identifier: MIT */
/*
 * A function whose debug information has its names in another file, as dwz(1) makes such, by the
 * name "alternate" beside this program's.
 */
#if __SIZEOF_POINTER__ == 8
#define ADDRESS .8byte
#else
#define ADDRESS .4byte
#endif

	.section .gnu_debugaltlink, "", %progbits
	.asciz "alternate"
	.fill 20, 1, 1 /* its build id */

	.section .debug_abbrev, "", %progbits
.Labbrev:
	.uleb128 1
	.uleb128 0x11 /* DW_TAG_compile_unit */
	.byte 0
	.uleb128 0x03 /* DW_AT_name, DW_FORM_GNU_strp_alt */
	.uleb128 0x1f21
	.uleb128 0x1b /* DW_AT_comp_dir, the same */
	.uleb128 0x1f21
	.uleb128 0x11 /* DW_AT_low_pc, DW_FORM_addr */
	.uleb128 0x01
	.uleb128 0x12 /* DW_AT_high_pc, DW_FORM_data8 */
	.uleb128 0x07
	.uleb128 0x10 /* DW_AT_stmt_list, DW_FORM_sec_offset */
	.uleb128 0x17
	.byte 0, 0
	.byte 0

	.section .debug_line, "", %progbits
.Lline:

	.section .debug_info, "", %progbits
.Linfo:
	.4byte .Linfo_end - .Linfo_start
.Linfo_start:
	.2byte 4
	.4byte .Labbrev
	.byte __SIZEOF_POINTER__
	.uleb128 1
	.4byte 0
	.4byte 0
	ADDRESS alternate
	.8byte .Lend - alternate
	.4byte .Lline
.Linfo_end:

	.section .debug_aranges, "", %progbits
	.4byte .Laranges_end - .Laranges_start
.Laranges_start:
	.2byte 2
	.4byte .Linfo
	.byte __SIZEOF_POINTER__, 0
	.balign 2 * __SIZEOF_POINTER__
	ADDRESS alternate
	ADDRESS .Lend - alternate
	ADDRESS 0, 0
.Laranges_end:

	.text
	.file 1 "elsewhere.c"
	.globl alternate
	.type alternate, %function
alternate:
	.loc 1 5
	.fill 8, 1, 0
	.size alternate, . - alternate
.Lend:

	.section .note.GNU-stack, "", %progbits

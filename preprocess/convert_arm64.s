//go:build !purego && !noasm

#include "textflag.h"

// Vector instructions that the assembler has no names for. Operands are numbers
// of registers: d = n op m.
#define FSUB2D(n, m, d) WORD $(0x4EE0D400 | (m)<<16 | (n)<<5 | (d))
#define FMUL2D(n, m, d) WORD $(0x6E60DC00 | (m)<<16 | (n)<<5 | (d))
#define FADD4S(n, m, d) WORD $(0x4E20D400 | (m)<<16 | (n)<<5 | (d))
#define FMUL4S(n, m, d) WORD $(0x6E20DC00 | (m)<<16 | (n)<<5 | (d))
#define FMAX4S(n, m, d) WORD $(0x4E20F400 | (m)<<16 | (n)<<5 | (d))
#define FMIN4S(n, m, d) WORD $(0x4EA0F400 | (m)<<16 | (n)<<5 | (d))
// To float32, into the low half of d or the high one.
#define FCVTN(n, d) WORD $(0x0E616800 | (n)<<5 | (d))
#define FCVTN2(n, d) WORD $(0x4E616800 | (n)<<5 | (d))

// Loads what both functions need of lanes: V16 to V23 of color, V24 peak, V25 to
// V30 norms. V31 is 0. V15 is the high word of the number 1<<52, four times.
#define CONSTANTS \
	VLD1R.P 8(R6), [V16.D2]       \
	VLD1R.P 8(R6), [V17.D2]       \
	ADD $8, R6                    \
	VLD1R.P 8(R6), [V19.D2]       \
	VLD1R.P 8(R6), [V20.D2]       \
	VLD1R.P 8(R6), [V21.D2]       \
	VLD1R.P 8(R6), [V22.D2]       \
	VLD1R.P 8(R6), [V23.D2]       \
	VLD1.P 16(R6), [V24.S4]       \
	VLD1.P 32(R6), [V25.S4, V26.S4] \
	VLD1.P 32(R6), [V27.S4, V28.S4] \
	VLD1 (R6), [V29.S4, V30.S4]   \
	VEOR V31.B16, V31.B16, V31.B16 \
	MOVD $0x43300000, R6          \
	VDUP R6, V15.S4

// One channel of four samples in V: clamp, normalise with V(MUL) and V(ADD).
#define FINISH(V, MUL, ADD) \
	FMAX4S(V, 31, V)   \
	FMIN4S(V, 24, V)   \
	FMUL4S(V, MUL, V)  \
	FADD4S(V, ADD, V)

// func convertRow(red, green, blue *float32, y *uint32, uv *uint64, n int, l *lanes)
TEXT ·convertRow(SB), NOSPLIT, $0-56
	MOVD red+0(FP), R0
	MOVD green+8(FP), R1
	MOVD blue+16(FP), R2
	MOVD y+24(FP), R3
	MOVD uv+32(FP), R4
	MOVD n+40(FP), R5
	MOVD l+48(FP), R6
	CONSTANTS

row:
	// Four samples: Y in V0 and V1, Cb in V2 and V3, Cr in V4 and V5.
	VLD1.P 16(R3), [V6.S4]
	VLD2.P 32(R4), [V7.S4, V8.S4]
	VZIP1 V15.S4, V6.S4, V0.S4
	VZIP2 V15.S4, V6.S4, V1.S4
	VZIP1 V15.S4, V7.S4, V2.S4
	VZIP2 V15.S4, V7.S4, V3.S4
	VZIP1 V15.S4, V8.S4, V4.S4
	VZIP2 V15.S4, V8.S4, V5.S4
	FSUB2D(0, 16, 0)
	FSUB2D(1, 16, 1)
	FSUB2D(2, 17, 2)
	FSUB2D(3, 17, 3)
	FSUB2D(4, 17, 4)
	FSUB2D(5, 17, 5)
	FMUL2D(0, 19, 0)
	FMUL2D(1, 19, 1)
	VORR V0.B16, V0.B16, V9.B16
	VORR V1.B16, V1.B16, V10.B16
	VORR V0.B16, V0.B16, V11.B16
	VORR V1.B16, V1.B16, V12.B16
	VFMLA V4.D2, V20.D2, V9.D2
	VFMLA V5.D2, V20.D2, V10.D2
	VFMLS V2.D2, V21.D2, V0.D2
	VFMLS V3.D2, V21.D2, V1.D2
	VFMLA V2.D2, V23.D2, V11.D2
	VFMLA V3.D2, V23.D2, V12.D2
	VFMLS V4.D2, V22.D2, V0.D2
	VFMLS V5.D2, V22.D2, V1.D2
	FCVTN(9, 13)
	FCVTN(0, 14)
	FCVTN(11, 8)
	FCVTN2(10, 13)
	FCVTN2(1, 14)
	FCVTN2(12, 8)
	FINISH(13, 25, 26)
	FINISH(14, 27, 28)
	FINISH(8, 29, 30)
	VST1.P [V13.S4], 16(R0)
	VST1.P [V14.S4], 16(R1)
	VST1.P [V8.S4], 16(R2)
	SUBS $4, R5, R5
	BGT row
	RET

// func convertGrayRow(red, green, blue *float32, y *uint32, n int, l *lanes)
TEXT ·convertGrayRow(SB), NOSPLIT, $0-48
	MOVD red+0(FP), R0
	MOVD green+8(FP), R1
	MOVD blue+16(FP), R2
	MOVD y+24(FP), R3
	MOVD n+32(FP), R5
	MOVD l+40(FP), R6
	CONSTANTS

gray:
	VLD1.P 16(R3), [V6.S4]
	VZIP1 V15.S4, V6.S4, V0.S4
	VZIP2 V15.S4, V6.S4, V1.S4
	FSUB2D(0, 16, 0)
	FSUB2D(1, 16, 1)
	FMUL2D(0, 19, 0)
	FMUL2D(1, 19, 1)
	FCVTN(0, 2)
	FCVTN2(1, 2)
	FMAX4S(2, 31, 2)
	FMIN4S(2, 24, 2)
	FMUL4S(2, 25, 3)
	FMUL4S(2, 27, 4)
	FMUL4S(2, 29, 5)
	FADD4S(3, 26, 3)
	FADD4S(4, 28, 4)
	FADD4S(5, 30, 5)
	VST1.P [V3.S4], 16(R0)
	VST1.P [V4.S4], 16(R1)
	VST1.P [V5.S4], 16(R2)
	SUBS $4, R5, R5
	BGT gray
	RET

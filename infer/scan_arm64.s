//go:build !purego && !noasm

#include "textflag.h"

// func scanRow(row *float32, n int, lift uint32) (above, any uint32)
TEXT ·scanRow(SB), NOSPLIT, $0-32
	MOVD row+0(FP), R0
	MOVD n+8(FP), R1
	MOVWU lift+16(FP), R2
	VDUP R2, V7.S4
	VEOR V0.B16, V0.B16, V0.B16
	VEOR V1.B16, V1.B16, V1.B16
	VEOR V2.B16, V2.B16, V2.B16
	VEOR V3.B16, V3.B16, V3.B16

scan:
	VLD1.P 32(R0), [V4.S4, V5.S4]
	VORR V4.B16, V1.B16, V1.B16
	VORR V5.B16, V3.B16, V3.B16
	VADD V7.S4, V4.S4, V4.S4
	VADD V7.S4, V5.S4, V5.S4
	VORR V4.B16, V0.B16, V0.B16
	VORR V5.B16, V2.B16, V2.B16
	SUBS $8, R1, R1
	BGT scan

	VORR V2.B16, V0.B16, V0.B16
	VORR V3.B16, V1.B16, V1.B16
	VMOV V0.D[0], R3
	VMOV V0.D[1], R4
	VMOV V1.D[0], R5
	VMOV V1.D[1], R6
	ORR R4, R3, R3
	ORR R6, R5, R5
	ORR R3>>32, R3, R3
	ORR R5>>32, R5, R5
	MOVW R3, above+24(FP)
	MOVW R5, any+28(FP)
	RET

package shape

import (
	"maps"
	"math"
)

// handlers says how each operation is followed.
func handlers() map[string]handler {
	all := layers()
	maps.Copy(all, arithmetic())
	maps.Copy(all, moves())
	return all
}

// set gives several operations one handler.
func set(to map[string]handler, h handler, ops ...string) {
	for _, op := range ops {
		to[op] = h
	}
}

func layers() map[string]handler {
	m := map[string]handler{
		"ConvTranspose": convTranspose, "Gemm": gemm, "Resize": resize, "Upsample": resize, "GridSample": gridSample,
		"MatMul": matMul(0, 1), "QLinearMatMul": matMul(0, 3),
		"EfficientNMS_TRT": efficientNMS, "BatchedNMSDynamic_TRT": efficientNMS, "NonMaxSuppression": suppression,
		"DynamicQuantizeLinear": dynamicQuantize,
	}
	set(m, conv(1), "Conv", "ConvInteger", "FusedConv")
	set(m, conv(3), "QLinearConv")
	set(m, matMul(0, 1), "MatMulInteger", "FusedMatMul")
	set(m, pool, "MaxPool", "AveragePool", "LpPool", "QLinearAveragePool")
	set(m, globalPool, "GlobalAveragePool", "GlobalMaxPool", "QLinearGlobalAveragePool")
	set(m, blocks, "SpaceToDepth", "DepthToSpace")
	set(m, same(2), "BatchNormalization", "PRelu", "Softplus", "Elu", "Selu", "Celu", "HardSwish", "HardSigmoid", "ThresholdedRelu", "QuantizeLinear", "QLinearLeakyRelu")
	set(m, same(4), "Sigmoid", "QLinearSigmoid", "Tanh", "Erf", "Gelu", "FastGelu", "QuickGelu", "Mish", "Softmax", "QLinearSoftmax", "LogSoftmax")
	set(m, same(5), "InstanceNormalization", "LayerNormalization", "SimplifiedLayerNormalization", "GroupNormalization", "LpNormalization", "LRN")
	return m
}

func arithmetic() map[string]handler {
	m := map[string]handler{
		"Relu": unary(1, func(v float64) float64 { return max(v, 0) }), "LeakyRelu": same(1),
		"Floor": unary(1, math.Floor), "Ceil": unary(1, math.Ceil), "Round": unary(1, math.RoundToEven), "Sqrt": unary(1, math.Sqrt),
		"Exp": unary(4, math.Exp), "Log": unary(4, math.Log), "Abs": unary(1, math.Abs),
		"Neg":        unary(1, func(v float64) float64 { return -v }),
		"Reciprocal": unary(1, func(v float64) float64 { return 1 / v }),
		"Not":        unary(0, func(v float64) float64 { return 1 - v }),
		"Cast":       cast, "CastLike": cast, "Where": where,
		"Add": binary(func(a, b float64) float64 { return a + b }), "Sub": binary(func(a, b float64) float64 { return a - b }),
		"Mul": binary(func(a, b float64) float64 { return a * b }), "Div": binary(func(a, b float64) float64 { return a / b }),
		"Mod": binary(math.Mod), "Pow": binary(math.Pow),
		"Min": many(func(a, b float64) float64 { return min(a, b) }), "Max": many(func(a, b float64) float64 { return max(a, b) }),
		"Sum": many(func(a, b float64) float64 { return a + b }), "Mean": many(func(a, b float64) float64 { return (a + b) / 2 }),
		"Equal": compare(func(a, b float64) bool { return a == b }), "Less": compare(func(a, b float64) bool { return a < b }),
		"Greater": compare(func(a, b float64) bool { return a > b }), "GreaterOrEqual": compare(func(a, b float64) bool { return a >= b }),
		"LessOrEqual": compare(func(a, b float64) bool { return a <= b }), "And": compare(func(a, b float64) bool { return a != 0 && b != 0 }),
		"Or": compare(func(a, b float64) bool { return a != 0 || b != 0 }), "Xor": compare(func(a, b float64) bool { return (a != 0) != (b != 0) }),
		"QLinearAdd": quantized, "QLinearMul": quantized,
	}
	set(m, same(1), "Clip", "Sign", "Sin", "Cos", "Tan", "Atan", "Softsign", "CumSum", "IsNaN", "IsInf")
	return m
}

// quantized combines inputs 0 and 3: each stands with its scale and zero point.
func quantized(c *call) {
	if len(c.in) < 4 {
		return
	}
	if dims, ok := broadcast(c.in[0].Dims, c.in[3].Dims); ok && c.in[0].Ranked && c.in[3].Ranked {
		c.give(0, dims...)
		c.cost(1)
	}
}

func moves() map[string]handler {
	m := map[string]handler{
		"Identity": unary(0, func(v float64) float64 { return v }), "Shape": shapeOf, "Size": size,
		"Reshape": reshape, "Flatten": flatten, "Transpose": transpose, "Squeeze": squeeze, "Unsqueeze": unsqueeze,
		"Concat": concat(0, 1), "QLinearConcat": concat(2, 3), "Split": split, "Slice": slice, "Gather": gather,
		"GatherElements": likeSecond, "GatherND": gatherND, "Constant": constantNode, "ConstantOfShape": constantOfShape,
		"Expand": expand, "Tile": tile, "Pad": pad, "Range": span, "NonZero": nonZero, "OneHot": oneHot, "If": choose,
		"ArgMax": argMax, "ArgMin": argMax, "TopK": topK,
	}
	set(m, reduce, "ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp")
	set(m, same(0), "Dropout", "DequantizeLinear", "ScatterND", "ScatterElements", "Scatter", "Trilu")
	return m
}

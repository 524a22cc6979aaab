package infer

// Kind is the form of a detector's outputs.
type Kind uint8

// The forms. In all of them an image's rows are those of its place in the batch,
// but where Columns.Image says otherwise.
const (
	// Joined: one tensor; a row holds a box, perhaps an objectness, and scores.
	Joined Kind = iota
	// Split: one tensor of boxes, one of scores.
	Split
	// EndToEnd: one tensor of finished rows: box, score, class.
	EndToEnd
	// Listed: tensors of boxes, scores and class ids of finished detections, and
	// perhaps one that counts them.
	Listed
	// Heads: one tensor, or one of boxes and one of scores, for every level of Grid.
	Heads
	// Selected: ONNX's NonMaxSuppression at the end of the graph: boxes and scores of all rows, and a
	// tensor of (image, class, row) that says which are left.
	Selected
)

// BoxFormat is what the four numbers of a box are.
type BoxFormat uint8

// The box formats.
const (
	XYXY   BoxFormat = iota // left, top, right, bottom
	CXCYWH                  // centre, width, height
	XYWH                    // left, top, width, height
	YXYX                    // top, left, bottom, right
	LTRB                    // distances of the four sides from the cell's point
)

// Coding is what is left to do until a box's numbers are of its BoxFormat in its
// Units. Every coding but Plain needs Grid.
type Coding uint8

// The codings.
const (
	// Plain: nothing.
	Plain Coding = iota
	// CellExp (YOLOX): x, y count cells from the cell's corner, width and height are logarithms
	// of cells: ((x+column)·stride, (y+row)·stride, e^w·stride, e^h·stride).
	CellExp
	// CellDistance: distances in cells from the cell's point.
	CellDistance
	// CellBins (GFL, NanoDet, YOLOv8): CellDistance where each side is Bins numbers, whose softmax weights
	// 0…Bins−1.
	CellBins
	// CellTanh (FastestDet): the centre is tanh(x)+column, tanh(y)+row in cells, width and height
	// are the sigmoid of the number in fractions of the input.
	CellTanh
)

// Units is what a Plain box is measured in.
type Units uint8

// The units.
const (
	InputPixels Units = iota
	Fractions         // 0..1 of the input's width and height
)

// Activation is what has still to be applied to scores and objectness.
type Activation uint8

// The activations.
const (
	None Activation = iota
	Sigmoid
	Softmax // over the row's scores, the background among them
)

// Level is one level of a grid. Rows of its cells follow each other line by line.
type Level struct {
	Stride int `json:"stride"` // input pixels a cell
	Width  int `json:"width"`  // cells
	Height int `json:"height"`
	// Boxes and Scores are places among the session's outputs. Used by Heads alone; the same
	// where one tensor holds both.
	Boxes  int `json:"boxes"`
	Scores int `json:"scores"`
}

// Columns says where in a row of a tensor things begin. −1: they are not there.
type Columns struct {
	Box    int `json:"box"`    // in the tensor of boxes
	Object int `json:"object"` // objectness, which is multiplied into every score
	Scores int `json:"scores"` // the first class (or background) in the tensor of scores; EndToEnd: the one score
	Class  int `json:"class"`  // EndToEnd: the class id
	Image  int `json:"image"`  // EndToEnd: the image's place in the batch
}

// Outputs are places among the session's outputs. −1: there is none.
type Outputs struct {
	Boxes   int `json:"boxes"` // also the one tensor of Joined and EndToEnd
	Scores  int `json:"scores"`
	Classes int `json:"classes"` // class ids
	Count   int `json:"count"`   // how many of the rows count
	// Selected is used by the kind Selected alone.
	Selected int `json:"selected"`
}

// Layout says how the outputs of a detector become boxes and scores.
type Layout struct {
	Kind Kind `json:"kind"`
	// Rows of one image; of all levels together. 0: each run tells.
	Rows int `json:"rows"`
	// Values is how many numbers a row of the tensor of boxes has (that of the one
	// tensor of Joined, EndToEnd and Heads of one tensor a level): 4 in Split and Listed. What Columns
	// and Classes do not use is passed over.
	Values int `json:"values"`
	// Classes is how many classes there are, without the background. 0: only the labels
	// can tell (EndToEnd, Listed).
	Classes int `json:"classes"`
	// ByValue: [values][rows] instead of [rows][values], of the tensor of boxes.
	ByValue bool `json:"by_value"`
	// ScoresByValue is the same of the tensor of scores of Split and of Heads with two tensors a level.
	ScoresByValue bool `json:"scores_by_value"`

	At     Columns   `json:"at"`
	Box    BoxFormat `json:"box"`
	Coding Coding    `json:"coding"`
	Units  Units     `json:"units"`

	Activation Activation `json:"activation"`
	// Background is the place of the background among the scores: 0, Classes or −1 for none.
	Background int `json:"background"`
	// OneClass: a row is one object, of its best class among those wanted (YOLO). Without it
	// every class that reaches its threshold is a detection of its own.
	OneClass bool `json:"one_class"`
	// Padded: rows beyond the last detection are filled with zeros, so that scores that are
	// all 0 are an empty scene and not a dead network.
	Padded bool `json:"padded"`
	// FirstID is the class id of the first label (TensorFlow counts from 1).
	FirstID int `json:"first_id"`
	// ObjectPower and ClassPower, where they are not 0, weigh the product of objectness and
	// class score: object^ObjectPower · class^ClassPower.
	ObjectPower float32 `json:"object_power,omitempty"`
	ClassPower  float32 `json:"class_power,omitempty"`

	Grid []Level `json:"grid,omitempty"`
	// Bins is how many numbers a side has in CellBins.
	Bins int `json:"bins,omitempty"`
	// CellPoint is where in its cell the point of a cell lies: 0.5 the centre, 0 the corner.
	CellPoint float32 `json:"cell_point"`

	Outputs Outputs `json:"outputs"`
}

package model

import (
	"strconv"
	"strings"
)

// cocoNames are COCO's classes in order of their ids; "-" is an id that is not used.
const cocoNames = "person,bicycle,car,motorcycle,airplane,bus,train,truck,boat,traffic light,fire hydrant,-,stop sign," +
	"parking meter,bench,bird,cat,dog,horse,sheep,cow,elephant,bear,zebra,giraffe,-,backpack,umbrella,-,-,handbag,tie,suitcase," +
	"frisbee,skis,snowboard,sports ball,kite,baseball bat,baseball glove,skateboard,surfboard,tennis racket,bottle,-,wine glass,cup," +
	"fork,knife,spoon,bowl,banana,apple,sandwich,orange,broccoli,carrot,hot dog,pizza,donut,cake,chair,couch,potted plant,bed,-," +
	"dining table,-,-,toilet,-,tv,laptop,mouse,remote,keyboard,cell phone,microwave,oven,toaster,sink,refrigerator,-,book,clock,vase," +
	"scissors,teddy bear,hair drier,toothbrush"

func coco80() []string {
	var list []string
	for name := range strings.SplitSeq(cocoNames, ",") {
		if name != "-" {
			list = append(list, name)
		}
	}
	return list
}

// coco91 gives a name to every id from 1 on (90 classes) or from 0 on (91).
func coco91(classes int) []string {
	var list []string
	if classes == 91 {
		list = append(list, "unused 0")
	}
	for i, name := range strings.Split(cocoNames, ",") {
		if name == "-" {
			name = "unused " + strconv.Itoa(i+1)
		}
		list = append(list, name)
	}
	return list
}

#!/usr/bin/env python3
"""What a user would write instead of edgecam: OpenCV (FFmpeg) + ONNX Runtime in Python, one process.

Reads a clip or RTSP URLs, runs the built-in model on every frame (or at --fps), prints one JSON line with frames,
wall seconds, CPU seconds of the process and analysed frames per CPU second. Written to be a fair peer: in-place
buffers, OpenCV's own NMS, ONNX Runtime's own threading. `make bench` runs it where Python has opencv-python-headless,
onnxruntime and numpy:
    scripts/peer_opencv.py --model infer/builtin/nanodet-g-416.onnx internal/sim/pets-s2l1-20s.mp4
"""
import argparse, json, resource, threading, time
import cv2
import numpy as np
import onnxruntime as ort

MEAN = np.array([103.53, 116.28, 123.675], np.float32)
STD = np.array([57.375, 57.12, 58.395], np.float32)


def letterbox(bgr, size):
    h, w = bgr.shape[:2]
    r = min(size / w, size / h)
    nw, nh = round(w * r), round(h * r)
    x, y = (size - nw) // 2, (size - nh) // 2
    out = np.full((size, size, 3), 114, np.uint8)
    cv2.resize(bgr, (nw, nh), dst=out[y:y + nh, x:x + nw], interpolation=cv2.INTER_LINEAR)
    return out, r, x, y


def detections(boxes, scores, threshold, iou):
    cls = scores.argmax(1)
    top = scores[np.arange(len(cls)), cls]
    keep = top >= threshold
    boxes, top, cls = boxes[keep], top[keep], cls[keep]
    if not len(boxes):
        return boxes, top, cls
    xywh = np.c_[boxes[:, :2], boxes[:, 2:] - boxes[:, :2]]
    idx = cv2.dnn.NMSBoxesBatched(xywh.tolist(), top.tolist(), cls.tolist(), threshold, iou)
    return boxes[idx], top[idx], cls[idx]


class Analyser:
    def __init__(self, model, threads):
        o = ort.SessionOptions()
        o.intra_op_num_threads = threads
        self.session = ort.InferenceSession(model, o, providers=["CPUExecutionProvider"])
        self.size = 416

    def __call__(self, bgr):
        img, r, x, y = letterbox(bgr, self.size)
        blob = ((img.astype(np.float32) - MEAN) / STD).transpose(2, 0, 1)[None]
        boxes, scores = self.session.run(["boxes", "scores"], {"images": np.ascontiguousarray(blob)})
        boxes, top, cls = detections(boxes[0], scores[0], 0.45, 0.6)
        if len(boxes):
            boxes = (boxes - np.array([x, y, x, y], np.float32)) / r
        return boxes, top, cls


def read(source, analyse, args, counts, i):
    cap = cv2.VideoCapture(source, cv2.CAP_FFMPEG)
    end = time.monotonic() + args.seconds
    due = 0.0
    while time.monotonic() < end:
        if not cap.grab():
            if "://" in source:
                break
            cap.set(cv2.CAP_PROP_POS_FRAMES, 0)
            continue
        now = time.monotonic()
        if args.fps and now < due:
            continue
        due = now + 1 / args.fps if args.fps else 0.0
        ok, frame = cap.retrieve()
        if ok:
            counts[i][0] += 1
            counts[i][1] += len(analyse(frame)[0])


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--model", required=True)
    p.add_argument("--seconds", type=float, default=15)
    p.add_argument("--fps", type=float, default=0, help="analysed frames a second and source; 0 = every frame")
    p.add_argument("--threads", type=int, default=2, help="ONNX Runtime intra-op threads")
    p.add_argument("sources", nargs="+")
    args = p.parse_args()
    cv2.setNumThreads(args.threads)
    analyse = Analyser(args.model, args.threads)
    analyse(np.zeros((480, 640, 3), np.uint8))
    counts = [[0, 0] for _ in args.sources]
    cpu0, t0 = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
    threads = [threading.Thread(target=read, args=(s, analyse, args, counts, i)) for i, s in enumerate(args.sources)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    cpu1, wall = resource.getrusage(resource.RUSAGE_SELF), time.monotonic() - t0
    cpu = cpu1.ru_utime + cpu1.ru_stime - cpu0.ru_utime - cpu0.ru_stime
    frames = sum(c[0] for c in counts)
    print(json.dumps({"peer": "opencv+onnxruntime", "opencv": cv2.__version__, "onnxruntime": ort.__version__,
                      "sources": len(args.sources), "frames": frames, "objects": sum(c[1] for c in counts),
                      "wall_s": round(wall, 2), "cpu_s": round(cpu, 2), "fps": round(frames / wall, 1),
                      "frames_per_cpu_s": round(frames / cpu, 2)}))


if __name__ == "__main__":
    main()

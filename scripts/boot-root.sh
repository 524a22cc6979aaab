#!/usr/bin/env bash
# boot-root.sh ROOT LOG
#
# Boots the Debian root at ROOT under its own systemd, in namespaces of its own
# (processes, mounts, network, control groups), and prints the process id of that
# systemd as this machine knows it. `nsenter -a -t PID COMMAND` runs a command
# inside; `kill -s RTMIN+4 PID` powers it off. ROOT keeps what changes in it.
# Needs root and a kernel with control groups, version 2, and no more: no
# systemd, no container program and no network on this machine.
set -eu

if [ "${1:-}" != --inside ]; then
  root=$(realpath "$1") log=$2
  # A group of its own, to be the root of the control groups inside.
  groups=$(mktemp -d)
  mount -t cgroup2 cgroup2 "$groups" || { echo "boot-root: no control groups, version 2, can be mounted here" >&2; exit 1; }
  group=$groups/edgecam-boot-$$
  mkdir "$group"
  # So that memory is counted inside; where another hierarchy has it, it is not.
  { echo +memory >"$groups/cgroup.subtree_control"; } 2>/dev/null || true
  (
    echo "$BASHPID" >"$group/cgroup.procs"
    umount -l "$groups"
    rmdir "$groups"
    exec setsid unshare --mount --pid --ipc --uts --net --cgroup --fork --propagation private "$0" --inside "$root"
  ) >"$log" 2>&1 </dev/null &
  outer=$!
  for _ in $(seq 100); do
    init=$(pgrep -P "$outer" || true)
    if [ -n "$init" ] && [ "$(cat "/proc/$init/comm" 2>/dev/null)" = systemd ]; then
      echo "$init"
      exit 0
    fi
    kill -0 "$outer" 2>/dev/null || break
    sleep 0.1
  done
  echo "boot-root: systemd did not start in $root; see $log" >&2
  kill "$outer" 2>/dev/null || true
  exit 1
fi

root=$2
mount --bind "$root" "$root"
cd "$root"
mount -t proc proc proc
mount --bind proc/sys proc/sys
mount -o remount,bind,ro proc/sys # the settings of this machine's kernel
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=0755,nosuid,nodev tmpfs run
mount -t tmpfs -o mode=0755,nosuid tmpfs dev
for d in null zero full random urandom tty; do
  mknod -m 0666 dev/$d c $((0x$(stat -c %t /dev/$d))) $((0x$(stat -c %T /dev/$d)))
done
ln -s /proc/self/fd dev/fd
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=0620 devpts dev/pts
ln -s pts/ptmx dev/ptmx
mount -t tmpfs -o mode=1777 tmpfs dev/shm
hostname edgecam-test
pivot_root . mnt
umount -l /mnt
# Any word but none in "container" tells systemd that the machine is not its own.
exec /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin container=edgecam-test /lib/systemd/systemd --log-target=console

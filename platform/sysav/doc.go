package sysav

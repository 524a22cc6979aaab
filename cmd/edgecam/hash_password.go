package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"edgecam/web"
)

// minPassword is the shortest password taken for a dashboard that others reach.
const minPassword = 8

func newHashPassword() *cobra.Command {
	return &cobra.Command{
		Use:   "hash-password",
		Short: "Make the password hash for server.auth.password_hash",
		Long:  "Hash-password asks for a password, or reads one line from standard input, and prints its argon2id hash.",
		Args:  exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			password, err := readPassword(cmd)
			if err != nil {
				return err
			}
			if len(password) < minPassword {
				return fmt.Errorf("read password: it has %d characters, at least %d are needed", len(password), minPassword)
			}
			hash, err := web.HashPassword(password)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), hash)
			return err
		},
	}
}

func readPassword(cmd *cobra.Command) (string, error) {
	if in, ok := cmd.InOrStdin().(*os.File); ok && term.IsTerminal(int(in.Fd())) {
		fmt.Fprint(cmd.ErrOrStderr(), "Password: ")
		p, err := term.ReadPassword(int(in.Fd()))
		fmt.Fprintln(cmd.ErrOrStderr())
		return string(p), err
	}
	line, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
	if line == "" && err != nil {
		return "", errors.New("read password: standard input is empty")
	}
	return strings.TrimRight(line, "\r\n"), nil
}

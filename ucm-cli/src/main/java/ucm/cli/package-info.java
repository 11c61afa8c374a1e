/**
 * The {@code ucm} command itself: the list of commands, exit codes, how a failure is said, and edits of traces.
 * Arguments go in, an exit code comes out. Other modules add commands as {@link
 * ucm.cli.Subcommand}.
 */
package ucm.cli;

/**
 * What commands need of the process: log, clean-up on Ctrl-C, plugins, metrics, host memory, the
 * engine's side of a transfer. It prints nothing but log lines. It knows no command.
 */
package ucm.cli.runtime;

package ucm.cli.lite;

import picocli.CommandLine.Command;
import ucm.cli.output.CliCommand;

/** {@code ucm lite}: engines that run in lite mode. */
@Command(
    name = "lite",
    description = "Looks at engines that count hits without moving a byte (use_lite: true).",
    subcommands = {LiteStatusCommand.class, LiteRunCommand.class})
public final class LiteCommand extends CliCommand {}

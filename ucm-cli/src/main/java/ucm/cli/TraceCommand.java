package ucm.cli;

import picocli.CommandLine.Command;
import ucm.cli.capacity.TiersCommand;
import ucm.cli.replay.ReplayCommand;
import ucm.cli.trace.AnalyzeCommand;
import ucm.cli.trace.EditCommands;
import ucm.cli.trace.GenerateCommand;
import ucm.cli.trace.StatCommand;

/** {@code ucm trace}: what recorded traffic says about a cache. */
@Command(
    name = "trace",
    description = "Analyses, replays and edits traces of requests.",
    subcommands = {
      AnalyzeCommand.class,
      TiersCommand.class,
      StatCommand.class,
      ReplayCommand.class,
      GenerateCommand.class
    })
final class TraceCommand extends EditCommands {}

package ucm.cli.directory;

import picocli.CommandLine.Command;
import ucm.cli.output.CliCommand;

/** {@code ucm store}: what lies in the directories of a storage stage. */
@Command(
    name = "store",
    description = {
      "Looks into directories of blocks and buckets, checks them and makes room, also while engines"
          + " use them.",
      "",
      "The layout of blocks and the folders' names are read from what is there. Nothing is changed"
          + " but by gc, adopt, copy and rm, and by verify with --quarantine."
    },
    subcommands = {
      StoreStatCommand.class,
      StoreLsCommand.class,
      StoreVerifyCommand.class,
      StoreGcCommand.class,
      StoreAdoptCommand.class,
      StoreCopyCommand.class,
      StoreRmCommand.class
    })
public final class StoreCommand extends CliCommand {}

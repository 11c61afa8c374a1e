package ucm.cli;

import java.io.OutputStream;
import java.io.PrintWriter;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.NoSuchFileException;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.ServiceLoader;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.ExecutionException;
import picocli.CommandLine.IVersionProvider;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.ParseResult;
import picocli.CommandLine.ScopeType;
import picocli.CommandLine.Spec;
import ucm.api.StoreException;
import ucm.cli.directory.StoreCommand;
import ucm.cli.lite.LiteCommand;
import ucm.cli.model.CalcCommand;
import ucm.cli.output.ByteSize;
import ucm.cli.output.StandardOutput;
import ucm.cli.output.UsageException;
import ucm.cli.replay.DemoCommand;
import ucm.cli.replay.ExplainCommand;
import ucm.cli.runtime.Cleanup;
import ucm.cli.runtime.EngineMemory.WrongBytesException;
import ucm.cli.runtime.LogSetup;
import ucm.cli.runtime.ProductVersion;
import ucm.cli.serve.ServeCommand;
import ucm.cli.setup.ConfigCommand;
import ucm.cli.setup.DoctorCommand;
import ucm.cli.setup.PluginsCommand;
import ucm.cli.setup.StoresCommand;
import ucm.lite.trace.TraceException;
import ucm.pipeline.catalog.UnknownStageException;
import ucm.pipeline.config.ConfigException;
import ucm.pipeline.config.ConfigReport;

/** The {@code ucm} command. Exit codes: 0 done, 1 failed, 2 wrong usage or configuration. */
@Command(
    name = "ucm",
    description = {
      "Keeps the KV cache of a language model outside the GPU: finds, checks and tries out the"
          + " stores that hold its blocks.",
      ""
    },
    mixinStandardHelpOptions = true,
    scope = ScopeType.INHERIT,
    versionProvider = Main.Version.class,
    synopsisSubcommandLabel = "COMMAND",
    exitCodeListHeading = "%nExit codes:%n",
    exitCodeList = {"0:done", "1:failed", "2:wrong usage or configuration"},
    footerHeading = "%nEnvironment:%n",
    footer = {
      "  UC_LOGGER_LEVEL    debug, info (default), warning or error",
      "  UCM_LOG_PATH       folder for log files, beside the standard error",
      "  UCM_LOG_MAX_SIZE   MiB of a log file (default 5)",
      "  UCM_LOG_MAX_FILES  log files that are kept (default 10)",
      "  UCM_PLUGINS        folder of plugin stores (default: plugins/ of the image)",
      "  UCM_JAVA_OPTS      further options for the Java runtime"
    })
public final class Main implements Runnable {

  private static final int FAILED = 1;
  private static final int WRONG_USAGE = 2;

  @Spec private CommandSpec spec;

  private Main() {}

  private static Map<String, Class<?>> commands() {
    Map<String, Class<?>> commands = new LinkedHashMap<>();
    commands.put("demo", DemoCommand.class);
    commands.put("stores", StoresCommand.class);
    commands.put("plugins", PluginsCommand.class);
    commands.put("store", StoreCommand.class);
    commands.put("config", ConfigCommand.class);
    commands.put("trace", TraceCommand.class);
    commands.put("explain", ExplainCommand.class);
    commands.put("lite", LiteCommand.class);
    commands.put("calc", CalcCommand.class);
    commands.put("serve", ServeCommand.class);
    ServiceLoader.load(Subcommand.class).stream()
        .map(ServiceLoader.Provider::type)
        .forEach(type -> commands.put(type.getAnnotation(Command.class).name(), type));
    commands.put("doctor", DoctorCommand.class);
    commands.put("completion", CompletionCommand.class);
    commands.put("help", HelpCommand.class);
    return commands;
  }

  /** Runs the command and ends the process with its exit code. */
  public static void main(String[] args) {
    if (args.length == 1 && (args[0].equals("--version") || args[0].equals("-V"))) {
      // As the command line would print it, which takes ten times as long to set up.
      System.out.println(ProductVersion.line());
      if (System.out.checkError()) {
        System.err.println("ucm: cannot write to the standard output");
        System.exit(FAILED);
      }
      return;
    }
    PrintWriter err = writer(System.err);
    LogSetup.problems(System.getenv()).forEach(problem -> err.println("ucm: " + problem));
    int exitCode = run(writer(new StandardOutput()), err, args);
    // After Ctrl-C the clean-up ends the process; a second exit from here would wait for it
    // forever.
    if (!Cleanup.interrupted()) {
      LogSetup.finish();
      System.exit(exitCode);
    }
  }

  private static PrintWriter writer(OutputStream stream) {
    return new PrintWriter(stream, true, StandardCharsets.UTF_8);
  }

  /** Runs the command within this process. */
  public static int run(PrintWriter out, PrintWriter err, String... args) {
    Optional<String> replacement = RemovedCommands.replacement(args);
    if (replacement.isPresent()) {
      err.println("ucm: " + replacement.get());
      return WRONG_USAGE;
    }
    CommandLine line =
        commandLine(args)
            .setOut(out)
            .setErr(err)
            .setCaseInsensitiveEnumValuesAllowed(true)
            .setParameterExceptionHandler(Main::wrongUsage)
            .setExecutionExceptionHandler(Main::failed)
            .setExecutionStrategy(Main::execute);
    try {
      int exitCode = line.execute(args);
      out.flush();
      return exitCode;
    } catch (StandardOutput.Failure e) {
      return outputFailed(e, err);
    }
  }

  /** As picocli does it, but help that cannot be printed fails as a command does. */
  private static int execute(ParseResult parsed) {
    try {
      return new CommandLine.RunLast().execute(parsed);
    } catch (StandardOutput.Failure e) {
      throw new ExecutionException(parsed.commandSpec().commandLine(), e.getMessage(), e);
    }
  }

  private static int outputFailed(StandardOutput.Failure e, PrintWriter err) {
    if (e.isClosedPipe()) {
      return 0;
    }
    err.println("ucm: " + e.getMessage());
    return FAILED;
  }

  /** Knows only the command that is asked for, as each takes time to set up; or all, to name them. */
  private static CommandLine commandLine(String[] args) {
    Map<String, Class<?>> commands = commands();
    Class<?> asked = args.length == 0 ? null : commands.get(args[0]);
    return knowing(asked == null ? commands : Map.of(args[0], asked));
  }

  /** Knows all commands. */
  static CommandLine whole() {
    return knowing(commands());
  }

  private static CommandLine knowing(Map<String, Class<?>> commands) {
    CommandLine line = new CommandLine(new Main());
    // No method reference: with this one in the image's archive of classes, its bytes differ by
    // build.
    for (Map.Entry<String, Class<?>> command : commands.entrySet()) {
      line.addSubcommand(command.getKey(), command.getValue());
    }
    return line.registerConverter(ByteSize.class, new ByteSize.Converter());
  }

  @Override
  public void run() {
    throw new ParameterException(spec.commandLine(), "name a command");
  }

  private static int wrongUsage(ParameterException e, String[] args) {
    CommandLine command = e.getCommandLine();
    PrintWriter err = command.getErr();
    err.println("ucm: " + ConfigReport.cut(e.getMessage()));
    CommandLine.UnmatchedArgumentException.printSuggestions(e, err);
    err.println("Try: " + command.getCommandSpec().qualifiedName() + " --help");
    return WRONG_USAGE;
  }

  private static int failed(Exception e, CommandLine command, ParseResult parsed) {
    if (Cleanup.interrupted()) {
      return FAILED;
    }
    PrintWriter err = command.getErr();
    if (e instanceof StandardOutput.Failure output) {
      return outputFailed(output, err);
    }
    switch (e) {
      case ConfigException _ -> err.println(e.getMessage());
      case UnknownStageException _, WrongBytesException _ -> err.println("ucm: " + e.getMessage());
      case UsageException _, StoreException _, TraceException _, UncheckedIOException _ ->
          err.println("ucm: " + ConfigReport.cut(e.getMessage()));
      case InterruptedException _ -> err.println("ucm: stopped");
      default -> {
        err.println("ucm: this should not happen, please report it:");
        e.printStackTrace(err);
      }
    }
    return switch (e) {
      case UsageException _, ConfigException _, UnknownStageException _ -> WRONG_USAGE;
      case UncheckedIOException _, TraceException _
          when e.getCause() instanceof NoSuchFileException ->
          WRONG_USAGE;
      default -> FAILED;
    };
  }

  static final class Version implements IVersionProvider {

    @Override
    public String[] getVersion() {
      return new String[] {ProductVersion.line()};
    }
  }
}

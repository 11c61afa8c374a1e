/**
 * {@code ucm bench}: measures stores beside the limits of the machine.
 *
 * @provides ucm.cli.Subcommand the command {@code bench}
 */
@org.jspecify.annotations.NullMarked
module ucm.bench {
  requires info.picocli;
  requires java.management;
  requires jdk.management;
  requires static org.jspecify;
  requires org.slf4j;
  requires tools.jackson.databind;
  requires ucm.cli;
  requires ucm.lite;
  requires ucm.pipeline;

  provides ucm.cli.Subcommand with
      ucm.bench.BenchCommand;

  opens ucm.bench to
      info.picocli;
}

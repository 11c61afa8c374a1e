/**
 * The {@code ucm} command. Another module may bring it a command: {@link ucm.cli.Subcommand}.
 *
 * @provides ucm.api.admin.HealthCheck for the findings that concern every pipeline
 * @provides ch.qos.logback.classic.spi.Configurator so that log lines have the original's form
 * @uses ucm.cli.Subcommand what other modules bring
 */
@org.jspecify.annotations.NullMarked
@SuppressWarnings("module") // The modules named below are built after this one.
module ucm.cli {
  requires ch.qos.logback.classic;
  requires ch.qos.logback.core;
  requires transitive info.picocli;
  requires java.management;
  requires jdk.management;
  requires jdk.unsupported;
  requires static org.jspecify;
  requires org.slf4j;
  requires tools.jackson.core;
  requires transitive tools.jackson.databind;
  requires ucm.device;
  requires transitive ucm.lite;
  requires transitive ucm.metrics;
  requires transitive ucm.pipeline;
  requires ucm.platform;
  requires ucm.server;

  exports ucm.cli to
      ucm.bench;
  exports ucm.cli.output to
      ucm.bench;
  exports ucm.cli.runtime to
      ucm.bench;

  provides ch.qos.logback.classic.spi.Configurator with
      ucm.cli.runtime.LogSetup;
  provides ucm.api.admin.HealthCheck with
      ucm.cli.setup.SystemHealthCheck;

  opens ucm.cli to
      info.picocli;
  opens ucm.cli.capacity to
      info.picocli;
  opens ucm.cli.directory to
      info.picocli;
  opens ucm.cli.lite to
      info.picocli;
  opens ucm.cli.model to
      info.picocli;
  opens ucm.cli.output to
      info.picocli,
      tools.jackson.databind;
  opens ucm.cli.replay to
      info.picocli;
  opens ucm.cli.runtime to
      info.picocli;
  opens ucm.cli.serve to
      info.picocli;
  opens ucm.cli.setup to
      info.picocli;
  opens ucm.cli.trace to
      info.picocli;

  uses ucm.cli.Subcommand;
}

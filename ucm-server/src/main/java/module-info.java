/**
 * {@code ucm serve}: the daemon through which engines in other processes use the stores. It speaks the protocol
 * of {@code docs/protocol.md} on a UNIX domain socket, and uses {@link ucm.pipeline.connector} as an engine in
 * the JVM does.
 *
 * @provides ucm.api.admin.HealthCheck whether a daemon answers
 * @provides ucm.cli.Subcommand the command {@code serve}
 */
@org.jspecify.annotations.NullMarked
module ucm.server {
  requires com.carrotsearch.hppc;
  requires info.picocli;
  requires jdk.net;
  requires static org.jspecify;
  requires org.slf4j;
  requires tools.jackson.databind;
  requires ucm.cli;
  requires ucm.device;
  requires ucm.metrics;
  requires transitive ucm.pipeline;
  requires ucm.platform;

  provides ucm.api.admin.HealthCheck with
      ucm.server.ServeHealthCheck;
  provides ucm.cli.Subcommand with
      ucm.server.ServeCommand;

  opens ucm.server to
      info.picocli;
}

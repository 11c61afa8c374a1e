/**
 * The daemon {@code ucm serve}, through which engines in other processes use the stores. It speaks the protocol
 * of {@code docs/protocol.md} on a UNIX domain socket, and uses {@link ucm.pipeline.connector} as an engine in
 * the JVM does.
 *
 * @provides ucm.api.admin.HealthCheck whether a daemon answers
 */
@org.jspecify.annotations.NullMarked
@SuppressWarnings("module") // The module named below is built after this one.
module ucm.server {
  requires com.carrotsearch.hppc;
  requires jdk.httpserver;
  requires jdk.net;
  requires static org.jspecify;
  requires org.slf4j;
  requires tools.jackson.core;
  requires tools.jackson.databind;
  requires ucm.device;
  requires ucm.lite;
  requires transitive ucm.pipeline;
  requires ucm.platform;

  exports ucm.server to
      ucm.cli;

  provides ucm.api.admin.HealthCheck with
      ucm.server.ServeHealthCheck;
}

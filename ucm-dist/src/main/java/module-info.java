/**
 * The {@code ucm} command.
 *
 * @provides ch.qos.logback.classic.spi.Configurator so that log lines have the original's form
 */
@org.jspecify.annotations.NullMarked
module ucm.dist {
  requires ch.qos.logback.classic;
  requires ch.qos.logback.core;
  requires info.picocli;
  requires java.management;
  requires jdk.management;
  requires jdk.unsupported;
  requires static org.jspecify;
  requires org.slf4j;
  requires tools.jackson.databind;
  requires ucm.lite;
  requires ucm.pipeline;

  provides ch.qos.logback.classic.spi.Configurator with
      ucm.dist.LogSetup;

  opens ucm.dist to
      info.picocli;
}

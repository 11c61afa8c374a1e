/**
 * The {@code ucm} command.
 *
 * @provides ucm.api.Checkup for the findings that concern every pipeline
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
  requires tools.jackson.core;
  requires tools.jackson.databind;
  requires ucm.device;
  requires ucm.lite;
  requires ucm.metrics;
  requires ucm.pipeline;

  uses ucm.api.Checkup;

  provides ch.qos.logback.classic.spi.Configurator with
      ucm.dist.LogSetup;
  provides ucm.api.Checkup with
      ucm.dist.SystemCheckup;

  opens ucm.dist to
      info.picocli;
}

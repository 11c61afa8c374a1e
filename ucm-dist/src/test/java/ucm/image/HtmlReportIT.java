package ucm.image;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;

/** The page of {@code --html}, as a browser shows it. */
class HtmlReportIT {

  private static final Path REAL_TRACE = Path.of("../../shared/data/conversation_trace.jsonl");

  @TempDir private Path folder;

  @Test
  void writesOneFileThatNamesNoOther() throws IOException {
    Path page = folder.resolve("report.html");
    UcmProcess.run("trace", "analyze", generated(), "--policies", "s3-fifo", "--html", page)
        .requireOk();
    String html = Files.readString(page);
    assertThat(html)
        .contains("Content-Security-Policy", "\"name\":\"s3-fifo\"", "hot_prefixes", "The knee of")
        .doesNotContain("<script src", "<link rel=\"stylesheet\"", "@@", "\"tiers\":");
    try (Stream<Path> files = Files.list(folder)) {
      assertThat(files).noneMatch(file -> file.toString().endsWith(".part"));
    }
  }

  @Test
  void doesNotLetATraceNameBecomeMarkup() throws IOException {
    Path page = folder.resolve("report.html");
    Path trace = generated();
    Path hostile = Files.move(trace, folder.resolve("<script>alert(1)<!--.jsonl"));
    assertThat(UcmProcess.run("trace", "analyze", hostile, "--html", page).exitCode()).isZero();
    assertThat(Files.readString(page)).doesNotContain("<script>alert").contains("u003cscript>a");
  }

  @Test
  void leavesOutWhatASampleCannotTell() throws IOException {
    Path page = folder.resolve("report.html");
    UcmProcess.run("trace", "analyze", generated(), "--sample", "0.5", "--html", page).requireOk();
    assertThat(Files.readString(page)).contains("LRU (sampled)").doesNotContain("\"time_bins\":");
  }

  @Test
  @Timeout(180)
  void drawsEveryChartInChromiumWithoutAComplaint() throws IOException {
    assumeTrue(Chromium.installed(), "needs the Debian package chromium (.ci/packages)");
    Path page = folder.resolve("report.html");
    boolean real = Files.exists(REAL_TRACE);
    UcmProcess.run(
            "trace",
            "tiers",
            real ? REAL_TRACE : generated(),
            "--model=qwq-32b",
            "--tp=4",
            "--hbm=100GB",
            "--dram=1TB",
            "--storage=10TB",
            "--gpu=h20",
            "--html",
            page)
        .requireOk();
    try (Chromium chromium = new Chromium(folder.resolve("profile"))) {
      chromium.open(page, /* dark= */ false);
      check(chromium, "curve", "capacity, GB", "hit rate", "LRU, leaf last", "LRU, root last");
      check(chromium, "tiers", "% of input tokens", "", "HBM", "DRAM", "storage", "computed");
      check(chromium, "ttft", "p99", "seconds", "without cache", "with these tiers");
      check(chromium, "gaps", "time since", "%", "between uses of a block");
      check(chromium, "hot", "tokens saved", "", "tokens saved");
      assertThat(text(chromium, "advice")).contains("knee", "99% of the ideal", "Loading");
      assertThat(text(chromium, "yaml")).contains("store_pipeline");

      assertThat(brightness(chromium)).isGreaterThan(200);
      String lightText = axisColour(chromium);
      chromium.theme(/* dark= */ true);
      chromium.evaluate(
          "new Promise(done => { const look = () => document.documentElement.dataset.theme =="
              + " 'dark' ? done(1) : requestAnimationFrame(look); look(); })");
      assertThat(brightness(chromium)).isLessThan(50);
      assertThat(axisColour(chromium)).isNotEqualTo(lightText);
      check(chromium, "curve", "capacity, GB", "hit rate", "LRU, leaf last");
      chromium.evaluate("document.getElementById('theme').click()");
      assertThat(brightness(chromium)).as("chosen by hand").isGreaterThan(200);
      choose(chromium, 1);
      check(chromium, "curve", "capacity, million tokens", "hit rate", "LRU, leaf last");

      assertThat(chromium.complaints()).isEmpty();
      assertThat(chromium.fetched())
          .allMatch(address -> address.startsWith("file:") || address.startsWith("data:"))
          .anyMatch(address -> address.endsWith("report.html"));
    }
  }

  /** Series as data, names of axes as drawn, and a tooltip that follows the mouse. */
  private static void check(
      Chromium chromium, String chart, String xAxis, String yAxis, String... series)
      throws IOException {
    JsonNode names =
        chromium.evaluate("ucmCharts." + chart + ".getOption().series.map(one => one.name)");
    assertThat(names).as(chart).extracting(JsonNode::asString).contains(series);
    String drawn = text(chromium, chart);
    assertThat(drawn).as(chart).contains(xAxis).contains(yAxis);
    JsonNode values =
        chromium.evaluate(
            "ucmCharts."
                + chart
                + ".getOption().series.flatMap(one =>"
                + " one.data).flat().filter(Number.isFinite).length");
    assertThat(values.asInt()).as(chart + " has values").isPositive();
    JsonNode place =
        chromium.evaluate(
            "(() => { const box = document.getElementById('"
                + chart
                + "'); box.scrollIntoView({block: 'center'}); const r ="
                + " box.getBoundingClientRect(); return [r.left, r.top, r.width, r.height]; })()");
    double middle = place.get(1).asDouble() + place.get(3).asDouble() * 0.45;
    chromium.moveMouse(1, 1);
    // Somewhere on the way from left to right there is a bar or a point of the curve.
    String tooltip = "";
    for (int step = 2; step < 38 && tooltip.isBlank(); step++) {
      chromium.moveMouse(place.get(0).asDouble() + place.get(2).asDouble() * step / 40, middle);
      tooltip =
          chromium
              .evaluate(
                  "new Promise(done => requestAnimationFrame(() => setTimeout(() => done("
                      + "[...document.querySelectorAll('#"
                      + chart
                      + " > div')].slice(1).filter(box => box.style.visibility !== 'hidden')"
                      + ".map(box => box.textContent).join('')), 0)))")
              .asString("");
    }
    assertThat(tooltip).as("tooltip of " + chart).containsPattern("[0-9]");
  }

  private static String text(Chromium chromium, String id) throws IOException {
    return chromium.evaluate("document.getElementById('" + id + "').textContent").asString();
  }

  private static void choose(Chromium chromium, int unit) throws IOException {
    chromium.evaluate(
        "(() => { const unit = document.getElementById('unit'); unit.value = "
            + unit
            + "; unit.dispatchEvent(new Event('change')); })()");
  }

  /** The red of the page's background, 0 to 255. */
  private static int brightness(Chromium chromium) throws IOException {
    return chromium
        .evaluate("Number(getComputedStyle(document.body).backgroundColor.match(/[0-9]+/)[0])")
        .asInt();
  }

  private static String axisColour(Chromium chromium) throws IOException {
    return chromium
        .evaluate("document.querySelector('#curve svg text').getAttribute('fill')")
        .asString();
  }

  private Path generated() throws IOException {
    Path trace = folder.resolve("made.jsonl");
    UcmProcess.run(
            "trace", "generate", "--requests", 400, "--mix", "chat=0.9,document=0.1", "-o", trace)
        .requireOk();
    return trace;
  }
}

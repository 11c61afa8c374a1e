package ucm.bench.measure;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;

/**
 * What fio, the usual tester of storage, measures for files of a block each: they are created and
 * written, and read again from the page cache, or past it as the plan says. Run by one thread.
 */
public record FioLimit(Path program, BenchPlan plan, Path folder) {

  private static final String PROGRAM = "fio";
  private static final long PAGE = 4096;
  private static final int DEPTH = 8;
  private static final long TIMEOUT_S = 120;
  // Of the line that --terse-version=3 prints: https://fio.readthedocs.io, "Terse output".
  private static final int VERSION_FIELD = 1;
  private static final int READ_SPEED_FIELD = 6;
  private static final int WRITE_SPEED_FIELD = 47;
  private static final double GB_OF_KIB = 1024 / 1e9;

  /** Looks for fio in folders joined with {@code :}, as in the environment variable PATH. */
  public static Optional<Path> find(String searchPath) {
    for (String entry : searchPath.split(":", -1)) {
      Path candidate = Path.of(entry, PROGRAM);
      if (Files.isRegularFile(candidate) && Files.isExecutable(candidate)) {
        return Optional.of(candidate);
      }
    }
    return Optional.empty();
  }

  /** Writes the files, then reads them. */
  public FioResult run() throws InterruptedException {
    try {
      Files.createDirectories(folder);
      String[] written = run("write");
      String[] read = run("read");
      return new FioResult(
          written[VERSION_FIELD],
          engine(),
          speed(written, WRITE_SPEED_FIELD),
          speed(read, READ_SPEED_FIELD));
    } catch (IOException e) {
      throw new UncheckedIOException(e.getMessage(), e);
    }
  }

  private String engine() {
    return plan.direct() ? "io_uring" : "psync";
  }

  private List<String> command(String kind) {
    long size = plan.layout().blockSize();
    long fileSize = plan.direct() ? Math.ceilDiv(size, PAGE) * PAGE : size;
    int jobs = Math.min(plan.threads(), plan.blocks());
    List<String> command = new ArrayList<>();
    command.add(program.toString());
    command.addAll(
        List.of(
            "--name=ucm",
            "--directory=" + folder,
            "--rw=" + kind,
            "--bs=" + fileSize,
            "--filesize=" + fileSize,
            "--nrfiles=" + Math.ceilDiv(plan.blocks(), jobs),
            "--numjobs=" + jobs,
            "--openfiles=1",
            "--file_service_type=sequential",
            "--create_on_open=1",
            "--fallocate=none",
            "--invalidate=0",
            "--ioengine=" + engine(),
            "--iodepth=" + (plan.direct() ? DEPTH : 1),
            "--direct=" + (plan.direct() ? 1 : 0),
            "--group_reporting",
            "--output-format=terse",
            "--terse-version=3"));
    return command;
  }

  private String[] run(String kind) throws IOException, InterruptedException {
    Path output = folder.resolve(kind + ".out");
    Process process =
        new ProcessBuilder(command(kind))
            .directory(folder.toFile())
            .redirectErrorStream(true)
            .redirectOutput(output.toFile())
            .start();
    try {
      if (!process.waitFor(TIMEOUT_S, TimeUnit.SECONDS)) {
        throw new IOException(program + " did not end within " + TIMEOUT_S + " s");
      }
    } finally {
      process.destroyForcibly();
    }
    String printed = Files.readString(output, StandardCharsets.UTF_8).strip();
    String[] fields = printed.lines().reduce((first, last) -> last).orElse("").split(";", -1);
    if (process.exitValue() != 0 || fields.length <= WRITE_SPEED_FIELD) {
      throw new IOException(
          program + " ended with " + process.exitValue() + " and printed: " + printed);
    }
    return fields;
  }

  private static double speed(String[] fields, int field) throws IOException {
    try {
      return Long.parseLong(fields[field]) * GB_OF_KIB;
    } catch (NumberFormatException e) {
      throw new IOException("fio printed no speed but " + fields[field], e);
    }
  }
}

package ucm.server;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import ucm.api.BlockLayout;
import ucm.pipeline.connector.engine.KvLayout;
import ucm.server.TestClient.Found;
import ucm.server.TestClient.Planned;
import ucm.server.protocol.MessageType;
import ucm.server.protocol.PlanMessage.PlannedMessage;

/**
 * A rank whose steps are lines of text, so that it can be a process: each word of a block follows from a number
 * that stands for the prompt's tokens. It compares what is promised, word by word, and fills what is saved.
 */
final class RemoteRank implements AutoCloseable {

  private static final KvLayout LAYOUT = KvLayout.uniform(1, 2048, 2048);
  private static final BlockLayout BLOCK = LAYOUT.blockLayout();
  private static final long[] NONE = {};

  /** Bytes of a block. */
  static final long BYTES = BLOCK.blockSize();

  private static final int NO_SLOT = PlannedMessage.NO_SLOT;

  private final TestClient client;
  private final int part;

  /** Whether it has read where a store has lent something. */
  boolean isLent;

  RemoteRank(Path socket, String yaml, int ranks, boolean mla, int rank) throws Exception {
    part = mla ? 0 : rank;
    client = TestClient.admitted(socket, TestClient.WORKER);
    client.openWorker("e", ranks, mla, yaml, rank, LAYOUT);
    if (yaml.contains("Cache") && !client.borrow(true)) {
      throw new IllegalStateException("nothing is lent");
    }
  }

  /** What tells a rank to load what was found, and to save what was planned. */
  static String line(int[] tokens, Found found, List<Planned> planned) {
    long save = planned.isEmpty() ? 0 : planned.getFirst().save();
    String saved = planned.isEmpty() ? "" : slots(tokens, planned.getFirst());
    Planned loads = new Planned(found.hold(), 0, found.slots());
    return found.hold() + ";" + slots(tokens, loads) + ";" + save + ";" + saved;
  }

  private static String slots(int[] tokens, Planned blocks) {
    List<String> all = new ArrayList<>();
    long number = 1;
    for (int at = 0, block = 0; block < blocks.firstBlock() + blocks.slots().size(); block++) {
      for (; at < (block + 1) * TestClient.BLOCK_TOKENS; at++) {
        number = number * 1_000_003 + tokens[at];
      }
      int slot =
          block < blocks.firstBlock() ? NO_SLOT : blocks.slots().get(block - blocks.firstBlock());
      // Slots that rest may be too many for a save.
      if (slot != NO_SLOT) {
        all.add(slot + ":" + number);
      }
    }
    return all.stream().collect(Collectors.joining(","));
  }

  /** Loads for such a step; returns how many of the words are not what they should be. */
  long wrong(String line) {
    return words(line.split(";", -1)[1], false);
  }

  /** Says that it has loaded; fills what is saved, and says so. */
  void report(String line) throws IOException {
    String[] parts = line.split(";", -1);
    report(MessageType.LOADED, Long.parseLong(parts[0]));
    var _ = words(parts[3], true);
    report(MessageType.SAVED, Long.parseLong(parts[2]));
  }

  private void report(int type, long number) throws IOException {
    if (number != 0) {
      client.report(type, new long[] {number}, NONE);
    }
  }

  /** Writes the words of blocks into slots, or counts those that are wrong there. */
  private long words(String slots, boolean write) {
    long wrong = 0;
    for (String one : slots.isEmpty() ? new String[0] : slots.split(",", -1)) {
      int colon = one.indexOf(':');
      int named = Integer.parseInt(one.substring(0, colon));
      isLent |= !write && client.isLent(named);
      MemorySegment slot = write ? client.slot(named, BYTES) : client.promised(named, BYTES);
      long number = Long.parseLong(one.substring(colon + 1));
      for (long at = 0; at < BYTES; at += Long.BYTES) {
        long word = (number * 31 + part) * 0x9E3779B97F4A7C15L + at;
        if (write) {
          slot.set(ValueLayout.JAVA_LONG_UNALIGNED, at, word);
        } else if (slot.get(ValueLayout.JAVA_LONG_UNALIGNED, at) != word) {
          wrong++;
        }
      }
    }
    return wrong;
  }

  @Override
  public void close() throws IOException {
    client.close();
  }

  /** A process: socket, file of the configuration, ranks, MLA, rank; then a step a line. */
  public static void main(String[] arguments) throws Exception {
    String yaml = Files.readString(Path.of(arguments[1]));
    int ranks = Integer.parseInt(arguments[2]);
    boolean mla = Boolean.parseBoolean(arguments[3]);
    int own = Integer.parseInt(arguments[4]);
    try (RemoteRank rank = new RemoteRank(Path.of(arguments[0]), yaml, ranks, mla, own);
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, UTF_8))) {
      System.out.println("@ready");
      for (String line = input.readLine(); line != null; line = input.readLine()) {
        long wrong = rank.wrong(line);
        rank.report(line);
        System.out.println("@" + wrong);
      }
    }
  }
}

package ucm.server.protocol;

import static ucm.server.protocol.Wire.As.U8;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import ucm.pipeline.connector.engine.KvGroups;
import ucm.pipeline.connector.engine.KvLayout;

/**
 * GROUPS: the groups of a hybrid model's KV cache, before the worker is opened.
 *
 * @param groups all of them; none for a model that is no hybrid
 */
public record GroupsMessage(List<Group> groups) {

  public static final GroupsMessage NONE = new GroupsMessage(List.of());

  /**
   * A group.
   *
   * @param kind 0 all tokens are looked at, 1 the last ones, 2 those of the chunk
   * @param tokens of a window or chunk
   * @param blockTokens tokens of a block of it
   * @param layers their numbers
   */
  // Packed on purpose. These records are compared by their lists.
  @SuppressWarnings("ArrayRecordComponent")
  public record Group(@Wire(U8) int kind, int tokens, int blockTokens, int[] layers) {

    private long[][] bytes(KvLayout layout) {
      return Arrays.stream(layers)
          .mapToObj(
              layer -> layout.bytes().get(layer).stream().mapToLong(Long::longValue).toArray())
          .toArray(long[][]::new);
    }
  }

  /** Whether there is one group alone, of which nothing is said. */
  public boolean isOne() {
    return groups.isEmpty();
  }

  /**
   * What the rules are.
   *
   * @param stages one worker of each
   * @throws ProtocolException when a layer is in no group or in two, a rule is none, or stages have not
   *     the same groups
   */
  public static KvGroups rules(List<WorkerFields> stages, int blockTokens)
      throws ProtocolException {
    List<Group> first = stages.getFirst().groups().groups;
    long[] bytes = new long[first.size()];
    for (WorkerFields stage : stages) {
      List<Group> own = stage.groups().groups;
      if (!rules(own).equals(rules(first))) {
        throw new ProtocolException(
            ProtocolException.REFUSED_ENGINE,
            "all stages have the same groups of layers; stage %s has %s, and the first one %s"
                .formatted(stage.stage().stage(), rules(own), rules(first)));
      }
      stage.groups().requireEachLayer(stage.layout());
      for (int i = 0; i < bytes.length; i++) {
        bytes[i] += sum(own.get(i).bytes(stage.layout()));
      }
    }
    if (first.isEmpty()) {
      return KvGroups.ONE;
    }
    List<KvGroups.Group> all = new ArrayList<>();
    try {
      for (int i = 0; i < bytes.length; i++) {
        Group group = first.get(i);
        all.add(new KvGroups.Group(kind(group.kind), group.tokens, group.blockTokens, bytes[i]));
      }
      return new KvGroups(blockTokens, all);
    } catch (IllegalArgumentException e) {
      throw ProtocolException.bad(String.valueOf(e.getMessage()));
    }
  }

  private static List<String> rules(List<Group> groups) {
    return groups.stream()
        .map(group -> "kind %s %s/%s".formatted(group.kind, group.tokens, group.blockTokens))
        .toList();
  }

  private void requireEachLayer(KvLayout layout) throws ProtocolException {
    if (isOne()) {
      return;
    }
    BitSet seen = new BitSet();
    for (Group group : groups) {
      for (int layer : group.layers) {
        if (layer >= layout.layers() || seen.get(layer)) {
          throw ProtocolException.bad(
              "each of the %s layers is in one group; found layer %s again, or beyond them"
                  .formatted(layout.layers(), layer));
        }
        seen.set(layer);
      }
    }
    if (seen.cardinality() != layout.layers()) {
      throw ProtocolException.bad(
          "each of the %s layers is in a group; found %s of them"
              .formatted(layout.layers(), seen.cardinality()));
    }
  }

  private static KvGroups.Kind kind(int number) throws ProtocolException {
    return switch (number) {
      case 0 -> KvGroups.Kind.ALL;
      case 1 -> KvGroups.Kind.LAST;
      case 2 -> KvGroups.Kind.CHUNK;
      default -> throw ProtocolException.bad("a group is of kind 0 to 2; found " + number);
    };
  }

  /** What a slot holds: a block of any group. Those of smaller groups leave its end as it is. */
  public KvLayout slot(KvLayout layout) {
    long[][] largest = {};
    for (Group group : groups) {
      long[][] bytes = group.bytes(layout);
      largest = sum(bytes) > sum(largest) ? bytes : largest;
    }
    return isOne() ? layout : KvLayout.of(largest);
  }

  private static long sum(long[][] bytes) {
    return Arrays.stream(bytes).flatMapToLong(Arrays::stream).sum();
  }

  /** For each layer its group. */
  public int[] groupOf(KvLayout layout) {
    int[] found = new int[layout.layers()];
    for (int group = 0; group < groups.size(); group++) {
      for (int layer : groups.get(group).layers) {
        found[layer] = group;
      }
    }
    return found;
  }

  /** All of it as a text, to compare with what another rank says. */
  @Override
  public String toString() {
    return groups.stream()
        .map(
            group ->
                "kind %s %s/%s of layers %s"
                    .formatted(
                        group.kind, group.tokens, group.blockTokens, Arrays.toString(group.layers)))
        .toList()
        .toString();
  }
}

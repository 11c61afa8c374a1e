package ucm.pipeline.hash;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import ucm.api.BlockIds;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.config.ConfigException;
import ucm.pipeline.config.UcmConfig;
import ucm.pipeline.hash.PromptVariant.Input;

/** The golden ids were computed by the original's hash function under CPython. */
class BlockHasherTest {

  private static final BlockHasher QWEN =
      BlockHasher.of("Qwen/Qwen2.5-0.5B-Instruct", 2, "torch.bfloat16");
  private static final BlockHasher QWQ = BlockHasher.of("Qwen/QwQ-32B", 4, "torch.bfloat16");

  /** Two blocks of 16 tokens with every size of integer in them. */
  private static int[] twoBlocks() {
    return IntStream.concat(
            IntStream.range(0, 16),
            IntStream.concat(
                IntStream.of(151643, 151644, 255, 256, 65535, 65536), IntStream.range(1000, 1010)))
        .toArray();
  }

  @Test
  void blocksFollowOneAnotherAsInTheOriginal() {
    assertThat(QWEN.hash(twoBlocks(), 16))
        .isEqualTo(
            BlockIds.ofHex("b76b82eeab7a7f89935624e71b78cda6", "022ac3d615b63faaa46dae90aa4dd2f9"));
  }

  @Test
  void longBlocksAreThoseOfTheOriginal() {
    int[] tokens = new int[3 * 128];
    for (int k = 0; k < 3; k++) {
      for (int i = 0; i < 128; i++) {
        tokens[128 * k + i] = (i * i * 7919 + k * 104729) % 152064;
      }
    }
    assertThat(QWQ.hash(tokens, 128))
        .isEqualTo(
            BlockIds.ofHex(
                "75e294b1fd555f129ff776ed7e47f83e",
                "7eb615d71342e4f3ad9428d17e561169",
                "ff449c309ce7dee0ea5398c873a3357d"));
  }

  @Test
  void otherRanksDeriveTheirIdsFromThoseOfRankZero() {
    BlockIds ids = QWEN.hash(twoBlocks(), 16);
    BlockIds ofRankOne = QWEN.ofRank(1, ids);
    assertThat(ofRankOne.size()).isEqualTo(2);
    assertThat(ofRankOne.hex(0)).isEqualTo("052d75e26f989a972d4a0373b7e5a00f");
    assertThat(QWEN.ofRank(0, ids)).isSameAs(ids);
    assertThat(QWEN.ofRank(2, ids)).isNotEqualTo(ofRankOne);
  }

  @Test
  void goesOnFromTheLastIdOfTheParent() {
    int[] tokens = twoBlocks();
    BlockIds first = QWEN.hash(tokens, 0, 16, 16, null);
    BlockIds second = QWEN.hash(tokens, 16, 32, 16, first);
    assertThat(second).isEqualTo(QWEN.hash(tokens, 16).slice(1, 2));
    assertThat(QWEN.hash(tokens, 16, 32, 16, QWEN.hash(tokens, 16)))
        .as("the parent is the last of several ids")
        .isNotEqualTo(second);
  }

  @Test
  void leavesOutTheLastBlockWhenItIsNotFull() {
    int[] tokens = twoBlocks();
    assertThat(QWEN.hash(tokens, 0, 31, 16, null)).isEqualTo(QWEN.hash(tokens, 0, 16, 16, null));
    assertThat(QWEN.hash(tokens, 0, 15, 16, null)).isEqualTo(BlockIds.empty());
    assertThat(QWEN.hash(tokens, 20, 20, 16, null)).isEqualTo(BlockIds.empty());
  }

  /** CPython: tuples of one, two and three integers have opcodes of their own. */
  @Test
  void shortBlocksHaveIdsOfTheirOwn() {
    int[] tokens = {7, 8, 9, 10};
    for (int size = 1; size <= 4; size++) {
      BlockIds ids = QWEN.hash(tokens, size);
      assertThat(ids.size()).isEqualTo(4 / size);
      assertThat(QWEN.hash(tokens, 0, size, size, null)).isEqualTo(ids.slice(0, 1));
    }
    assertThat(QWEN.hash(tokens, 1).hex(0)).isEqualTo("4b510b5774723b0cfbcd45d09e782d12");
    assertThat(QWEN.hash(tokens, 2).hex(0)).isEqualTo("0569f4d0ae769703c98bd76dde13cd1b");
    assertThat(QWEN.hash(tokens, 3).hex(0)).isEqualTo("f3763a7bf9acbf84429039d7cd5bff46");
    assertThat(QWEN.hash(tokens, 4).hex(0)).isEqualTo("bd280ef386e673edf58d5ad453c7c890");
  }

  @Test
  void theLargestBlockStillFitsIntoOneFrame() {
    int[] tokens = IntStream.range(100_000, 100_000 + BlockHasher.MAX_BLOCK_TOKENS).toArray();
    assertThat(QWEN.hash(tokens, tokens.length).hex(0))
        .isEqualTo("af901be2d16c5d49ced7233dc11e8abe");
  }

  @Test
  void refusesBlocksThatTheOriginalWouldPickleInFrames() {
    assertThatThrownBy(() -> QWEN.hash(new int[20_000], 13_001))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage(
            "a block has 1 to 13000 tokens, above which the original's ids change their form; found"
                + " 13001");
    assertThatThrownBy(() -> QWEN.hash(new int[16], 0)).hasMessageContaining("found 0");
  }

  @Test
  void refusesNegativeTokens() {
    assertThatThrownBy(() -> QWEN.hash(new int[] {1, 2, -3, 4}, 2))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("a token id is 0 or more; found -3 at index 2");
  }

  @Test
  void refusesAModelWithoutAName() {
    assertThatThrownBy(() -> BlockHasher.of(" ", 1, "torch.bfloat16"))
        .hasMessageContaining("found model \" \", size 1");
    assertThatThrownBy(() -> BlockHasher.of("m", 0, "torch.bfloat16"))
        .hasMessageContaining("size 0");
    assertThatThrownBy(() -> QWEN.ofRank(-1, BlockIds.empty())).hasMessageContaining("found -1");
  }

  @Test
  void variantsOfAPromptHaveIdsOfTheirOwnAndPlainPromptsThoseOfTheOriginal() {
    List<PromptVariant> variants =
        List.of(
            PromptVariant.lora("a"),
            images(new Input("a", 0, 2)),
            new PromptVariant("", List.of(), "a"),
            new PromptVariant("a", List.of(new Input("b", 0, 2)), ""),
            images(new Input("a", 0, 2), new Input("b", 2, 4)),
            images(new Input("b", 0, 2), new Input("a", 2, 4)),
            images(new Input("a", 1, 2)),
            images(new Input("a;mm:1:b@2", 0, 2)),
            images(new Input("a", 16, 17)));
    Set<BlockIds> ids = new HashSet<>();
    ids.add(QWEN.hash(twoBlocks(), 16));
    for (PromptVariant variant : variants) {
      ids.add(QWEN.forVariant(variant).hash(twoBlocks(), 16));
    }
    assertThat(ids).hasSize(variants.size() + 1);
    assertThat(QWEN.forVariant(PromptVariant.NONE)).isSameAs(QWEN);
    BlockHasher back = QWEN.forVariant(variants.get(0)).forVariant(PromptVariant.NONE);
    assertThat(back.hash(twoBlocks(), 16)).isEqualTo(QWEN.hash(twoBlocks(), 16));
  }

  private static PromptVariant images(Input... inputs) {
    return new PromptVariant("", List.of(inputs), "");
  }

  private static BlockIds blocks(PromptVariant variant, int... fromTo) {
    return QWEN.forVariant(variant).hash(new int[64], fromTo[0], fromTo[1], 16, null);
  }

  @Test
  void anImageNamesTheBlocksThatItTouchesAndThoseAfterThem() {
    // Four blocks of 16 tokens; the image takes the last token of block 1 and the first of block 2.
    BlockIds plain = blocks(PromptVariant.NONE, 0, 64);
    BlockIds one = blocks(images(new Input("a", 31, 33)), 0, 64);
    BlockIds other = blocks(images(new Input("b", 31, 33)), 0, 64);
    assertThat(one.slice(0, 1)).isEqualTo(other.slice(0, 1)).isEqualTo(plain.slice(0, 1));
    for (int block = 1; block < 4; block++) {
      assertThat(Set.of(plain.hex(block), one.hex(block), other.hex(block)))
          .as("block " + block)
          .hasSize(3);
    }
    // What comes behind the last block is in no id.
    assertThat(blocks(images(new Input("a", 64, 70)), 0, 64)).isEqualTo(plain);
  }

  @Test
  void aPromptHashedInTwoPartsHasTheIdsOfTheWhole() {
    PromptVariant whole = images(new Input("a", 5, 9), new Input("b", 30, 40));
    int[] tokens = new int[64];
    BlockIds all = QWEN.forVariant(whole).hash(tokens, 16);
    BlockIds head = all.slice(0, 2);
    BlockIds tail = QWEN.forVariant(whole.after(32)).hash(new int[32], 0, 32, 16, head);
    assertThat(tail).isEqualTo(all.slice(2, 4));
    assertThat(QWEN.hash(new int[32], 0, 32, 16, head)).isNotEqualTo(tail);
  }

  @Test
  void theOriginalsWayOfHashingIsTheServiceOfThatName() {
    StoreCatalog catalog = StoreCatalog.find();
    assertThat(catalog.blockHashings()).contains("md5-pickle");
    UcmConfig original = UcmConfig.of("Fake", Map.of());
    BlockHasher found =
        original.blockHashing(catalog).hasher("Qwen/Qwen2.5-0.5B-Instruct", 2, "torch.bfloat16");
    assertThat(found.hash(twoBlocks(), 16)).isEqualTo(QWEN.hash(twoBlocks(), 16));
    UcmConfig other = original.withTopLevel(Map.of("block_hasher", "sha256"), "test");
    assertThatThrownBy(() -> other.blockHashing(catalog))
        .isInstanceOf(ConfigException.class)
        .hasMessageContaining("block_hasher: is sha256; found are md5-pickle");
    assertThat(other.check(catalog).hasErrors()).isTrue();
  }
}

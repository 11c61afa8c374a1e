package ucm.testkit;

import ucm.api.BlockLayout;

/** The layouts that the contract suite moves blocks of. */
enum SampleLayout {
  ONE_TENSOR(BlockLayout.uniform(4096, 4096, 4096)),
  TWO_TENSORS_THREE_SHARDS(BlockLayout.uniform(2048, 4096, 12_288)),
  ODD_TENSORS(BlockLayout.of(new long[] {1001, 37, 4099, 1}, 2 * (1001 + 37 + 4099 + 1))),
  TWENTY_FOUR_LAYERS(BlockLayout.uniform(4096, 8192, 24 * 8192));

  // It is immutable, without the annotation that would say so: ucm.api requires no library.
  @SuppressWarnings("Immutable")
  private final BlockLayout layout;

  SampleLayout(BlockLayout layout) {
    this.layout = layout;
  }

  BlockLayout layout() {
    return layout;
  }
}

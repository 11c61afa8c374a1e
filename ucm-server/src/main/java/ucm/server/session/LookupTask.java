package ucm.server.session;

import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.pipeline.connector.PromptLookup;
import ucm.server.protocol.LookupMessage.FoundMessage;
import ucm.server.session.Holds.Hold;

/**
 * The part of a look-up that may take long: asks the store, has what it found brought into slots, and
 * answers when it is there.
 *
 * @param computed tokens on the device
 * @param promptBlocks full blocks of the prompt
 * @param generation of the slots
 * @param answer called once
 */
record LookupTask(
    SchedulerSession session,
    EngineBlocks blocks,
    RequestEntry request,
    int computed,
    int promptBlocks,
    int generation,
    PromptLookup lookup,
    Consumer<FoundMessage> answer)
    implements Runnable {

  private static final Logger LOG = LoggerFactory.getLogger(LookupTask.class);

  /**
   * What a look-up found.
   *
   * @param tokens that are offered when all ids are loaded
   * @param slots for the first of the ids
   * @param hold of the slots; null when nothing is loaded
   */
  // Handed on once. These records are not compared.
  @SuppressWarnings("ArrayRecordComponent")
  record Offer(int tokens, int foundBlocks, BlockIds ids, int[] slots, @Nullable Hold hold) {

    static final Offer NOTHING = new Offer(0, 0, BlockIds.empty(), new int[0], null);
  }

  @Override
  public void run() {
    Offer offer;
    try {
      if (session.isAwaited(lookup)) {
        lookup.askStore();
      }
      offer = session.offer(this);
    } catch (RuntimeException e) {
      LOG.error("a look-up of {} failed because of a mistake in the daemon", request.id, e);
      offer = Offer.NOTHING;
    }
    if (offer.hold == null) {
      findNothing(offer.foundBlocks);
    } else {
      fill(offer, offer.hold);
    }
  }

  private void fill(Offer offer, Hold hold) {
    blocks.load(
        request.id,
        offer.ids.slice(0, offer.slots.length),
        offer.slots,
        there -> {
          int[] held = blocks.holds.filled(hold, there);
          boolean whole = held.length == offer.ids.size();
          answer.accept(
              new FoundMessage(
                  hold.handle,
                  whole ? offer.tokens : held.length * blocks.blockTokens,
                  held.length == 0 ? 0 : hold.id,
                  generation,
                  held,
                  promptBlocks,
                  Math.max(offer.foundBlocks, held.length)));
        });
  }

  void findNothing(int foundBlocks) {
    answer.accept(FoundMessage.nothing(request.handle, generation, promptBlocks, foundBlocks));
  }
}

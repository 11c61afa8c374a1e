package ucm.server.session;

import java.util.List;
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
   * @param hold of what is loaded; null when nothing is
   * @param parts of a hybrid model, what of each group the ids name; else none
   */
  record Offer(
      int tokens,
      int foundBlocks,
      BlockIds ids,
      @Nullable Hold hold,
      List<FoundMessage.Part> parts) {

    static final Offer NOTHING = nothing(0);

    static Offer nothing(int found) {
      return new Offer(0, found, BlockIds.empty(), null, List.of());
    }
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
        offer.ids,
        (loaded, _) -> {
          // A part of what a hybrid model's hit wants is of no use.
          boolean useless = !offer.parts.isEmpty() && loaded.length < offer.ids.size();
          if (useless) {
            blocks.holds.cancel(hold);
          }
          int[] held = blocks.holds.filled(hold, loaded);
          boolean whole = held.length == offer.ids.size();
          answer.accept(
              new FoundMessage(
                  hold.handle,
                  whole ? offer.tokens : held.length * blocks.blockTokens,
                  held.length == 0 ? 0 : hold.id,
                  generation,
                  held,
                  promptBlocks,
                  useless ? 0 : Math.max(offer.foundBlocks, found(offer, held)),
                  held.length == 0 ? List.of() : offer.parts));
        });
  }

  private static int found(Offer offer, int[] held) {
    return offer.parts.isEmpty() ? held.length : 0;
  }

  void findNothing(int foundBlocks) {
    answer.accept(FoundMessage.nothing(request.handle, generation, promptBlocks, foundBlocks));
  }
}

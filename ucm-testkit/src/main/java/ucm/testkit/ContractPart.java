package ucm.testkit;

import org.junit.jupiter.api.extension.ExtendWith;

/** Tests that {@link StoreContract} is put together from; each part is an interface of its own. */
@ExtendWith(BoundedSteps.class)
interface ContractPart {

  /** The store's answers to what the suite has to know, and how it is opened and closed. */
  StoreContract suite();
}

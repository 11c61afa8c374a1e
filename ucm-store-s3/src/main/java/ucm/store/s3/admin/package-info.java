/**
 * The administration of a bucket: what lies below a prefix, whole objects of any layout, whether they are
 * unharmed, and room. An address and settings go in, records come out, without an open store.
 */
package ucm.store.s3.admin;

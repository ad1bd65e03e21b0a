//! Repair: after it replicas have the same, whoever coordinates it and however it is asked for.

use protocol::Consistency;

use crate::ring::{Members, NODES};
use crate::streams::{KEYS, LATE, counts, has_all, log, no_leftovers, ring_with_a_gap};

/// What a preview says of replicas that agree.
const IN_SYNC: &str = "Previewed data was in sync";

/// A repair that succeeds; else it is said what the nodes said.
fn repair(members: &Members, n: u8, words: &str) -> String {
    let reply = members.verb(n, &format!("repair {words}"));
    if reply.exit == 0 {
        return reply.out;
    }
    let said: String = (1..=NODES).map(|n| format!("{n}: {}\n", log(members, n))).collect();
    panic!("seed {}: {}{}\n{said}", members.world.seed(), reply.out, reply.err);
}

#[test]
fn replicas_agree_after_a_repair() {
    let ways =
        ["-full ks", "-full -seq ks", "-full -dcpar ks", "-full -os ks", "-full -j 4 ks a b"];
    for (seed, words) in (1..).zip(ways) {
        let members = ring_with_a_gap(seed);
        let coordinator = (seed % u64::from(NODES)) as u8 + 1;
        let before = repair(&members, coordinator, "-prv -full ks");
        assert!(before.contains("Preview complete\n"), "{before}");
        assert!(counts(&members, LATE)[0] < KEYS as u32, "a preview changes nothing");
        let said = repair(&members, coordinator, words);
        assert!(said.contains("Repair completed successfully"), "{said}");
        for n in 1..=NODES {
            has_all(&members, n);
            assert_eq!(no_leftovers(&members, n), Ok(()));
            let after = repair(&members, n, "-prv -full ks");
            assert!(after.contains(IN_SYNC), "{n}: {after}");
        }
    }
}

#[test]
fn each_node_repairs_what_it_is_the_first_replica_of() {
    let members = ring_with_a_gap(11);
    for n in 1..=NODES {
        repair(&members, n, "-full -pr ks");
    }
    (1..=NODES).for_each(|n| has_all(&members, n));
}

#[test]
fn what_is_deleted_stays_deleted() {
    let members = ring_with_a_gap(12);
    let others = (1..NODES).map(|n| members.id(n)).collect();
    let late = vec![members.id(LATE)];
    members.world.set_fault(env::sim::Fault::Partition { a: late, b: others });
    members.until("it is down", || members.seen(1) == (3, 2));
    for k in 0..KEYS / 4 {
        members.at(1, Consistency::Quorum, &format!("DELETE FROM ks.a WHERE k = {k}")).unwrap();
    }
    members.world.set_fault(env::sim::Fault::Heal);
    members.all_up();
    repair(&members, LATE, "-full ks a");
    for n in 1..=NODES {
        assert_eq!(counts(&members, n)[0], (KEYS - KEYS / 4) as u32, "{n}");
    }
}

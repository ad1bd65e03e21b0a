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

/// What `repair_admin list -a` says of the states of sessions.
fn sessions(members: &Members, n: u8) -> Vec<String> {
    let list = members.out(n, "repair_admin list -a");
    let state = |line: &str| line.split('|').nth(1).map(|state| state.trim().to_owned());
    list.lines().skip(1).filter_map(state).collect()
}

/// Nothing waits for the end of a repair.
fn nothing_pends(members: &Members, n: u8) -> bool {
    let pending = members.out(n, "repair_admin summarize-pending ks");
    pending.lines().skip(1).all(|line| line.contains("(0 sstables"))
}

#[test]
fn what_an_incremental_repair_repaired_is_not_looked_at_again() {
    for seed in 21..24 {
        let members = ring_with_a_gap(seed);
        let coordinator = (seed % u64::from(NODES)) as u8 + 1;
        repair(&members, coordinator, "ks");
        for n in 1..=NODES {
            members.until("all is released", || nothing_pends(&members, n));
            has_all(&members, n);
            assert_eq!(no_leftovers(&members, n), Ok(()));
            assert_eq!(sessions(&members, n), ["FINALIZED"], "{n}");
            let stats = members.out(n, "repair_admin summarize-repaired ks");
            let is_never = |line: &str| line.split('|').nth(2).map(str::trim) == Some("0");
            assert!(!stats.lines().skip(1).any(is_never), "{stats}");
        }
        let validated = repair(&members, coordinator, "-vd ks");
        assert!(validated.contains("Repaired data is in sync"), "{validated}");
        // what is written since is on its own
        for k in 0..10 {
            let text = format!("INSERT INTO ks.a (k, v) VALUES ({}, 'new')", KEYS + k);
            members.at(1, Consistency::All, &text).unwrap();
        }
        repair(&members, coordinator, "ks");
        for n in 1..=NODES {
            members.until("all is released", || nothing_pends(&members, n));
            assert_eq!(sessions(&members, n), ["FINALIZED", "FINALIZED"], "{n}");
            assert_eq!(counts(&members, n), [KEYS as u32 + 10, KEYS as u32], "{n}");
        }
    }
}

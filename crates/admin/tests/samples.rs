//! `nodetool profileload`, `toppartitions` and `rangekeysample`, as Cassandra 5.0.9 printed them.

use crate::common::{Fake, say_with};

fn say(line: &str) -> (u8, String, String) {
    let (reply, _) = say_with(Fake::default(), line);
    (reply.exit, reply.out, reply.err)
}

#[test]
fn each_sampler_has_its_columns() {
    let nothing = "   Nothing recorded during sampling period...\n";
    let expected = format!(
        "Frequency of reads by partition:
   Table Partition Count +/-
   k1.t  1         8     0{blank}
   k1.u  a b:4     1     0{blank}

Frequency of writes by partition:
{nothing}
Longest read query times:
   Query                                                     Microseconds
   SELECT * FROM k1.t WHERE k = 3 LIMIT 5000 ALLOW FILTERING 783{micros}

Partitions read with the most rows:
{nothing}
Partitions read with the most tombstones:
   Table Partition Tombstones
   k1.t  3         4{tombstones}

Partitions read with the most sstables:
{nothing}
Max mutation size by partition:
   Table Partition Bytes
   k1.t  6         134{bytes}

Frequency of CAS contention by partition:
{nothing}
",
        blank = " ".repeat(2),
        micros = " ".repeat(9),
        tombstones = " ".repeat(9),
        bytes = " ".repeat(2),
    );
    for verb in ["toppartitions", "profileload"] {
        assert_eq!(say(&format!("{verb} 500")), (0, expected.clone(), String::new()));
    }
    let reads = "Frequency of reads by partition:\n   Table Partition Count +/-\n";
    let (_, out, _) = say("toppartitions -a READS k1 t 300");
    assert!(out.starts_with(reads) && out.ends_with("0  \n\n"), "{out}");
}

#[test]
fn schedules_are_made_listed_and_ended() {
    assert_eq!(say("profileload -i 1000 300"), (0, String::new(), String::new()));
    let refused = "Unable to schedule sampling for keyspace: k1, table: null due to existing \
         samplings. Stop the existing sampling jobs first.\n";
    assert_eq!(say("profileload -i 1000 k1 * 300"), (0, refused.to_owned(), String::new()));
    assert_eq!(say("profileload -t"), (0, String::new(), String::new()));
    let none = "Unable to stop the non-existent scheduled sampling for keyspace: k1, table: t\n";
    assert_eq!(say("profileload -t k1 t"), (0, none.to_owned(), String::new()));
    let list = "   KEYSPACE TABLE\n         k1     *\n         k1     t\nlonger_name     t\n";
    assert_eq!(say("profileload -l"), (0, list.to_owned(), String::new()));
}

#[test]
fn keys_are_tokens() {
    let keys = "RangeKeySample: \n\t-7666712501878195859\n\t5\n";
    assert_eq!(say("rangekeysample"), (0, keys.to_owned(), String::new()));
}

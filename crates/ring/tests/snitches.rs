//! Where nodes are, and how fast they were of late.

use crate::common;

use common::{address, node, numbers, simple};
use ring::*;
use types::Token;

const MILLI: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MILLI;

const RACK_DC: &str = "# where we are\ndc = east\nrack: r\\u0031 \nprefer_local=TRUE\n";
const TOPOLOGY: &str = "127.0.0.1=east:r1\n127.0.0.2\\:7001 = west : r2 : x\n/10.0.0.1=lost\n\
    2001\\:db8\\:\\:1=north:r9\ndefault=south:r0\n";

fn place(snitch: &Snitch, number: u16, said: Option<(&str, &str)>) -> String {
    let (center, rack) = snitch.place(address(number), number == 1, said);
    format!("{center}:{rack}")
}

#[test]
fn by_name() {
    let new = |name, rack_dc, topology| Snitch::new(name, rack_dc, topology, address(1));
    let said = Some(("said", "so"));
    let simple = new("SimpleSnitch", None, None).unwrap();
    assert_eq!(place(&simple, 2, said), "datacenter1:rack1");
    assert!(!simple.by_place());

    let name = "org.apache.cassandra.locator.GossipingPropertyFileSnitch";
    let gossiping = new(name, Some(RACK_DC), None).unwrap();
    let expected = RackDc {
        data_center: "east".into(),
        rack: "r1".into(),
        prefer_local: true,
        suffix: String::new(),
    };
    assert!(matches!(&gossiping, Snitch::GossipingPropertyFile(here, None) if *here == expected));
    assert_eq!(place(&gossiping, 1, said), "east:r1");
    assert_eq!(place(&gossiping, 2, said), "said:so");
    assert_eq!(place(&gossiping, 2, None), "UNKNOWN_DC:UNKNOWN_RACK");
    let told = new(name, Some(RACK_DC), Some(TOPOLOGY)).unwrap();
    assert_eq!(place(&told, 2, None), "south:r0");
    assert_eq!(place(&told, 2, said), "said:so");
    let text = "DC or rack not found in snitch properties, check your configuration in: cassandra-rackdc.properties";
    for wrong in [None, Some("dc=east"), Some("rack=r1\n#dc=x")] {
        assert_eq!(new(name, wrong, None).unwrap_err().to_string(), text);
    }

    let file = new("PropertyFileSnitch", None, Some(TOPOLOGY)).unwrap();
    assert_eq!(place(&file, 1, said), "east:r1");
    let Snitch::PropertyFile(topology) = &file else { panic!("{file:?}") };
    let at = |text: &str| {
        let socket: std::net::SocketAddr = text.parse().unwrap();
        topology.place(types::Address::new(socket.ip(), socket.port()))
    };
    assert_eq!(at("127.0.0.2:7001"), Some(("west", "r2")));
    assert_eq!(at("127.0.0.2:7000"), Some(("south", "r0")));
    assert_eq!(at("10.0.0.1:7000"), Some(("default", "default")));
    assert_eq!(at("[2001:db8::1]:7000"), Some(("north", "r9")));
    let lacks = |text| new("PropertyFileSnitch", None, text).unwrap_err().to_string();
    assert!(lacks(None).contains("needs cassandra-topology.properties"));
    assert!(lacks(Some("nowhere=a:b")).contains("Unknown host nowhere"));
    assert!(lacks(Some("127.0.0.2=a:b")).contains("this node's broadcast address 127.0.0.1:7000"));

    let inferring = new("RackInferringSnitch", None, None).unwrap();
    assert_eq!(place(&inferring, 260, said), "0:1");
    // a cloud says where it is before the node starts
    let cloud = new("Ec2Snitch", Some("dc=us-east-1\nrack=us-east-1a\n"), None).unwrap();
    assert_eq!(place(&cloud, 1, said), "us-east-1:us-east-1a");
    assert_eq!(place(&cloud, 2, said), "said:so");
    let unknown = new("CloudstackSnitch", None, None).unwrap_err();
    assert!(unknown.to_string().starts_with("endpoint_snitch CloudstackSnitch is not supported"));
}

/// Four nodes of one rack, all of them replicas, in the order 2, 3, 4, 1 from token 150 on.
fn four() -> Ring {
    let nodes = (1..=4).map(|n| node(n, "east", "r1", &[i64::from(n) * 100])).collect();
    Ring::new(nodes, [&simple(4)]).unwrap()
}

fn order(ring: &Ring, scores: &Scores) -> Vec<u16> {
    let mut nodes = ring.placement(&simple(4)).unwrap().at(Token(150)).natural.to_vec();
    Proximity { by_place: true, scores: Some(scores) }.sort(ring, &mut nodes);
    numbers(ring, &nodes)
}

#[test]
fn who_is_slow_is_asked_last() {
    let ring = four();
    let mut dynamic = Dynamic::new(0, DynamicSettings::default());
    for (number, millis) in [(1, 2), (2, 3), (3, 40), (4, 3)] {
        (0..20).for_each(|_| dynamic.received(address(number), millis * MILLI));
    }
    assert_eq!(dynamic.step(99 * MILLI).map(|_| ()), None);
    let scores = dynamic.step(100 * MILLI).unwrap();
    assert_eq!(order(&ring, &scores), [1, 2, 4, 3]);
    // less than twice as bad is not bad
    let mut dynamic = Dynamic::new(0, DynamicSettings::default());
    for (number, millis) in [(1, 30), (2, 59), (3, 40), (4, 32)] {
        dynamic.received(address(number), millis * MILLI);
    }
    assert_eq!(order(&ring, &dynamic.scores()), [1, 2, 3, 4]);
    dynamic.set(DynamicSettings { badness_threshold: 0.1, ..DynamicSettings::default() });
    assert_eq!(order(&ring, &dynamic.scores()), [1, 4, 3, 2]);
    dynamic.set(DynamicSettings { badness_threshold: 0.0, ..DynamicSettings::default() });
    assert_eq!(order(&ring, &dynamic.scores()), [1, 4, 3, 2]);
    // who was never asked is good enough to be asked
    dynamic.forget(address(2));
    assert_eq!(order(&ring, &dynamic.scores())[0], 2);
}

#[test]
fn less_than_a_millisecond_is_none() {
    let mut dynamic = Dynamic::new(0, DynamicSettings::default());
    dynamic.received(address(1), MILLI - 1);
    dynamic.received(address(2), 1);
    assert_eq!(order(&four(), &dynamic.scores()), [1, 2, 3, 4]);
    assert!(dynamic.rows().iter().all(|row| row.score == 0.0));
}

#[test]
fn the_newer_the_heavier_and_then_forgotten() {
    let mut dynamic = Dynamic::new(0, DynamicSettings::default());
    let median = |dynamic: &Dynamic| dynamic.rows().first().map(|row| row.median_millis);
    (0..100).for_each(|_| dynamic.received(address(2), 500 * MILLI));
    let mut now = 0;
    let mut pass = |dynamic: &mut Dynamic, nanos: u64| {
        let until = now + nanos;
        while dynamic.due() <= until {
            now = dynamic.due();
            dynamic.step(now);
        }
        now = until;
    };
    // nobody asks it: it stays as slow as it was
    pass(&mut dynamic, 60 * SECOND);
    assert_eq!(median(&dynamic), Some(480.0));
    // some seconds of better answers outweigh all that was
    for _ in 0..3 {
        pass(&mut dynamic, SECOND);
        dynamic.received(address(2), 5 * MILLI);
    }
    assert_eq!(median(&dynamic), Some(5.0));
    pass(&mut dynamic, 600 * SECOND);
    assert_eq!(median(&dynamic), None);
}

#[test]
fn what_a_node_says_of_itself_adds_to_its_score() {
    let ring = four();
    let mut dynamic = Dynamic::new(0, DynamicSettings::default());
    dynamic.set_severity(address(1), 3.5);
    dynamic.received(address(2), 10 * MILLI);
    dynamic.received(address(3), 30_000 * MILLI);
    dynamic.received(address(4), u64::MAX);
    let rows = dynamic.rows();
    assert_eq!(rows.iter().map(|row| row.address).collect::<Vec<_>>(), [1, 2, 3, 4].map(address));
    assert_eq!((rows[0].score, rows[0].severity), (3.5, 3.5));
    assert_eq!((rows[3].score, rows[3].median_millis), (1.0, 122_880.0));
    assert!((rows[2].median_millis - 30_000.0).abs() < 30_000.0 / 8.0, "{:?}", rows[2]);
    assert_eq!(order(&ring, &dynamic.scores()), [2, 3, 4, 1]);
    dynamic.set_severity(address(1), f64::NAN);
    assert_eq!(dynamic.rows()[0].address, address(2));
    assert_eq!(order(&ring, &dynamic.scores()), [1, 2, 3, 4]);
}

#[test]
fn a_scan_of_a_slow_node_is_not_merged() {
    let strategy = simple(2);
    let nodes = (1..=3).map(|n| node(n, "east", "r1", &[i64::from(n) * 100])).collect();
    let ring = Ring::new(nodes, [&strategy]).unwrap();
    let placement = ring.placement(&strategy).unwrap();
    let mut dynamic = Dynamic::new(0, DynamicSettings::default());
    for (number, millis) in [(1, 1), (2, 100), (3, 1)] {
        dynamic.received(address(number), millis * MILLI);
    }
    let scans = |scores: Option<&Scores>| {
        let proximity = Proximity { by_place: true, scores };
        let ends = [Some(Token(100)), Some(Token(200))].into_iter();
        let level = protocol::Consistency::One;
        RangePlans::new(&ring, placement, level, proximity, ends).count()
    };
    // 1 has the one, 3 the other, and 2 both
    assert_eq!((scans(None), scans(Some(&dynamic.scores()))), (1, 2));
}

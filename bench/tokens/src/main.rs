//! x
use ring::*;
use types::*;
fn main() {
    let a: Vec<String> = std::env::args().skip(1).collect();
    let (k, racks, rf, n): (u32, usize, u32, usize) = (
        a[0].parse().unwrap(),
        a[1].parse().unwrap(),
        a[2].parse().unwrap(),
        a[3].parse().unwrap(),
    );
    let method = if a.len() > 4 && a[4] == "c" { Method::Cassandra } else { Method::Even };
    let mut seed: u64 = a.get(5).map_or(7, |s| s.parse().unwrap());
    let mut random = move || {
        seed = seed.wrapping_add(0x9e3779b97f4a7c15);
        let mut z = seed;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d049bb133111eb);
        z ^ (z >> 31)
    };
    let mut nodes: Vec<Node> = vec![];
    for i in 1..=n {
        let rack = format!("r{}", 1 + (i - 1) % racks);
        let address = Address::new([127, 0, (i >> 8) as u8, i as u8], 7000);
        let t = allocate(
            &nodes,
            &Newcomer { address, data_center: "dc1", rack: &rack, num_tokens: k },
            rf,
            method,
            &mut random,
        )
        .unwrap();
        print!("new {i} dc1 {rack} {k} {rf}");
        for x in &t {
            print!(" {}", x.0);
        }
        println!();
        nodes.push(Node {
            address,
            host_id: Uuid(i as u128),
            data_center: "dc1".into(),
            rack: rack.as_str().into(),
            tokens: t,
            state: State::Normal,
            is_up: true,
            is_local: i == 1,
            accepts_clients: true,
        });
    }
}

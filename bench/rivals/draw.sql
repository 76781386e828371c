-- Serial numbers, histories and inventories of an ordinary schema. The sums of
-- the weights stand beside the entries, so that a pick is a binary search; an
-- entry that runs out makes the caller try again, and is then given weight 0
-- by whoever looks after the pool.
create table entries (
  id int primary key,
  item text not null,
  sum bigint not null,                   -- of the weights up to here
  stock bigint not null check (stock >= 0)
);
create table history (
  request_id text primary key,
  player text not null,
  entry int not null,
  at timestamptz not null default now()
);
create table inventory (
  player text not null,
  item text not null,
  quantity bigint not null,
  primary key (player, item)
);

-- draw picks an entry for a player, once for each request id, and returns it.
create function draw(in_id text, in_player text) returns int language plpgsql as $$
declare
  picked int;
  reward text;
begin
  select id, item into picked, reward from entries
    where sum > (select floor(random() * max(sum)) from entries) order by sum limit 1;
  insert into history (request_id, player, entry) values (in_id, in_player, picked)
    on conflict do nothing;
  if not found then
    return (select entry from history where request_id = in_id);
  end if;
  update entries set stock = stock - 1 where id = picked;
  insert into inventory values (in_player, reward, 1)
    on conflict (player, item) do update set quantity = inventory.quantity + 1;
  return picked;
end $$;

-- draw_batch does the same for many at once, by sets, and returns how many it made.
create function draw_batch(ids text[], players text[]) returns bigint language sql as $$
  with sums as materialized (
    select array_agg(sum order by sum) as upto, array_agg(id order by sum) as id, max(sum) as total from entries
  ), asked as materialized (
    select a.request_id, a.player, s.id[width_bucket(floor(random() * s.total)::bigint, s.upto) + 1] as entry
    from unnest(ids, players) as a(request_id, player), sums s
  ), made as (
    insert into history (request_id, player, entry) select request_id, player, entry from asked
    on conflict do nothing returning player, entry
  ), taken as (
    update entries e set stock = e.stock - m.n
    from (select entry, count(*) as n from made group by entry order by entry) m where e.id = m.entry
  ), given as (
    insert into inventory (player, item, quantity)
    select m.player, e.item, count(*) from made m join entries e on e.id = m.entry group by m.player, e.item order by m.player, e.item
    on conflict (player, item) do update set quantity = inventory.quantity + excluded.quantity
  )
  select count(*) from made;
$$;
